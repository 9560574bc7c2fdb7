#include "formats/gguf_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "base/faulty_env.h"
#include "formats/raw_gguf.h"

namespace kvasir::formats {
namespace {

using tensor::Shape;
using testing::HasSubstr;

constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();

// The message of the Error, or "" if the bytes were read.
std::string ErrorOf(std::span<const std::byte> bytes) {
  const auto file = GgufFile::Parse(bytes, "m.gguf");
  if (file) return "";
  EXPECT_EQ(file.error().code, base::ErrorCode::kBadData);
  EXPECT_THAT(file.error().message, testing::StartsWith("m.gguf: "));
  EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
  return file.error().message;
}
std::string ErrorOf(const RawGguf& raw) { return ErrorOf(raw.bytes()); }

// One tensor with these dimensions (fastest first) and enough data for what is small.
RawGguf OneTensor(std::initializer_list<std::uint64_t> dims, std::uint32_t type,
                  std::size_t data_bytes) {
  RawGguf raw(1, 0);
  raw.Tensor("t", dims, type, 0).PadTo(32).Zeros(data_bytes);
  return raw;
}

// Every kind of value, and two tensors that fill the data section to its last byte.
RawGguf SmallValidFile() {
  RawGguf raw(2, 9);
  raw.Key("general.architecture", GgufValueType::kString).String("gpt2");
  raw.Key("general.alignment", GgufValueType::kUint32).Number<std::uint32_t>(32);
  raw.Key("u8", GgufValueType::kUint8).Number<std::uint8_t>(7);
  raw.Key("i64", GgufValueType::kInt64).Number<std::int64_t>(-7);
  raw.Key("f64", GgufValueType::kFloat64).Number(0.5);
  raw.Key("yes", GgufValueType::kBool).Number<std::uint8_t>(1);
  raw.Key("words", GgufValueType::kArray).Type(GgufValueType::kString).Number<std::uint64_t>(2);
  raw.String("春").String("");
  raw.Key("bools", GgufValueType::kArray).Type(GgufValueType::kBool).Number<std::uint64_t>(2);
  raw.Number<std::uint8_t>(0).Number<std::uint8_t>(1);
  raw.Key("none", GgufValueType::kArray).Type(GgufValueType::kFloat32).Number<std::uint64_t>(0);
  raw.Tensor("a", {2, 3}, 0, 0).Tensor("b", {16}, 1, 32).PadTo(32);
  for (int i = 0; i < 6; ++i) raw.Number(static_cast<float>(i));
  return raw.PadTo(32).Zeros(32);
}

TEST(GgufReaderTest, ReadsAValidFile) {
  const RawGguf raw = SmallValidFile();
  const auto file = GgufFile::Parse(raw.bytes(), "m.gguf");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file.value().version(), 3u);
  EXPECT_EQ(file.value().alignment(), 32u);
  EXPECT_EQ(file.value().metadata().entries().size(), 9u);
  ASSERT_EQ(file.value().tensors().size(), 2u);
  const GgufTensor* a = file.value().Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->shape, (Shape{3, 2}));  // Turned about: the file says 2 then 3.
  EXPECT_EQ(a->type, GgufType::kF32);
  ASSERT_EQ(a->data.size(), 24u);
  float last;
  std::memcpy(&last, a->data.data() + 20, 4);
  EXPECT_EQ(last, 5.0f);
  EXPECT_EQ(file.value().Get("b").value()->data.size(), 32u);
  EXPECT_EQ(file.value().DTypeOf(*file.value().Find("b")).value(), tensor::DType::kF16);
  EXPECT_EQ(file.value().Find("c"), nullptr);
  EXPECT_EQ(file.value().Get("c").error().message, "m.gguf: tensor 'c' is missing");
}

TEST(GgufReaderTest, MovedFileKeepsItsViews) {
  const RawGguf raw = SmallValidFile();
  auto first = GgufFile::Parse(raw.bytes(), "m.gguf");
  ASSERT_TRUE(first.has_value());
  const GgufFile second = std::move(first).value();
  EXPECT_EQ(second.metadata().GetString("general.architecture").value(), "gpt2");
  EXPECT_EQ(second.Find("a")->name, "a");
}

TEST(GgufReaderTest, ReadsVersion2AndNoOther) {
  EXPECT_EQ(ErrorOf(RawGguf(0, 0, 2)), "");
  EXPECT_EQ(ErrorOf(RawGguf(0, 0, 3)), "");
  for (const std::uint32_t version : {0u, 1u, 4u, 0xFFFFFFFFu}) {
    EXPECT_THAT(ErrorOf(RawGguf(0, 0, version)), HasSubstr("supported are 2 and 3"));
  }
  EXPECT_THAT(ErrorOf(RawGguf(0, 0, 0x03000000u)), HasSubstr("big-endian GGUF version 3"));
}

TEST(GgufReaderTest, RefusesOtherFiles) {
  EXPECT_THAT(ErrorOf(RawGguf()), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf(RawGguf().Text("PK\3\4 a zip file, more or less")),
              HasSubstr("begins with 'PK\\u0003\\u0004'"));
  EXPECT_THAT(ErrorOf(RawGguf().Text("GGU")), HasSubstr("begins with 'GGU'"));
}

// Case C125: the magic alone, and every prefix of a valid file.
TEST(GgufReaderTest, EveryPrefixIsAnError) {
  EXPECT_NE(ErrorOf(RawGguf::FromHex("47475546")), "");
  const RawGguf raw = SmallValidFile();
  ASSERT_EQ(ErrorOf(raw), "");
  for (std::size_t size = 0; size < raw.bytes().size(); ++size) {
    const std::vector<std::byte> prefix(raw.bytes().begin(),
                                        raw.bytes().begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(ErrorOf(prefix), "") << size;
  }
}

// Padding after the last tensor holds nothing, and some writers leave it out.
TEST(GgufReaderTest, PaddingAtTheEndMayBeMissing) {
  EXPECT_EQ(ErrorOf(OneTensor({2, 3}, 0, 24)), "");
  EXPECT_THAT(ErrorOf(OneTensor({2, 3}, 0, 23)), HasSubstr("takes 24 bytes at offset 0"));
}

TEST(GgufReaderTest, EveryChangedByteIsReadOrRefused) {
  const RawGguf raw = SmallValidFile();
  const std::size_t header = raw.bytes().size() - 64;
  std::size_t refused = 0;
  for (std::size_t at = 0; at < header; ++at) {
    std::vector<std::byte> bytes = raw.bytes();
    for (unsigned flip = 1; flip < 256; ++flip) {
      bytes[at] = raw.bytes()[at] ^ static_cast<std::byte>(flip);
      const auto file = GgufFile::Parse(bytes, "m.gguf");
      if (!file) {
        ++refused;
        continue;
      }
      for (const GgufEntry& entry : file.value().metadata().entries()) {
        EXPECT_FALSE(entry.value.ValueText().empty());
      }
      for (const GgufTensor& tensor : file.value().tensors()) {
        EXPECT_GE(tensor.data.data(), bytes.data());
        EXPECT_LE(tensor.data.data() + tensor.data.size(), bytes.data() + bytes.size());
      }
    }
  }
  EXPECT_GT(refused, header * 100);
}

// Case C127: lengths near 2^64 and 2^63, and one byte more than there is.
TEST(GgufReaderTest, StringLengthsAreComparedWithWhatIsLeft) {
  EXPECT_NE(
      ErrorOf(RawGguf::FromHex("474755460300000000000000000000000100000000000000ffffffffffffffff")),
      "");
  for (const std::uint64_t length :
       {kMaxU64, kMaxU64 - 31, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) - 1,
        std::uint64_t{1} << 32, std::uint64_t{33}}) {
    RawGguf key(0, 1);
    key.Number(length).Zeros(32);
    EXPECT_THAT(ErrorOf(key), HasSubstr("metadata key takes")) << length;
    RawGguf value(0, 1);
    value.Key("k", GgufValueType::kString).Number(length).Zeros(32);
    EXPECT_THAT(ErrorOf(value), HasSubstr("metadata string takes")) << length;
    RawGguf element(0, 1);
    element.Key("k", GgufValueType::kArray).Type(GgufValueType::kString).Number<std::uint64_t>(2);
    element.String("x").Number(length).Zeros(32);
    EXPECT_THAT(ErrorOf(element), HasSubstr("array string takes")) << length;
    RawGguf name(1, 0);
    name.Number(length).Zeros(32);
    EXPECT_THAT(ErrorOf(name), HasSubstr("tensor name takes")) << length;
  }
}

TEST(GgufReaderTest, CountsAreComparedWithWhatIsLeft) {
  for (const std::uint64_t count :
       {kMaxU64, std::uint64_t{1} << 63, std::uint64_t{1} << 40, std::uint64_t{1000}}) {
    EXPECT_THAT(ErrorOf(RawGguf(count, 0).Zeros(1000)), HasSubstr("tensors are announced"));
    EXPECT_THAT(ErrorOf(RawGguf(0, count).Zeros(1000)), HasSubstr("entries are announced"));
    for (const GgufValueType type :
         {GgufValueType::kUint8, GgufValueType::kString, GgufValueType::kFloat64}) {
      RawGguf raw(0, 1);
      raw.Key("k", GgufValueType::kArray).Type(type).Number(count).Zeros(999);
      EXPECT_THAT(ErrorOf(raw), HasSubstr("999 bytes are left"));
    }
  }
  // Enough bytes for the tensors before the metadata, not after.
  RawGguf raw(2, 1);
  raw.Key("k", GgufValueType::kString).String(std::string(100, 'x'));
  EXPECT_THAT(ErrorOf(raw), HasSubstr("0 bytes are left after the metadata"));
}

// Case C129: products of dimensions that wrap to 0, to −2, to a few.
TEST(GgufReaderTest, ProductOfDimensionsIsChecked) {
  RawGguf raw = RawGguf::FromHex(
      "474755460300000001000000000000000000000000000000010000000000000074020000000000000000000040"
      "040000000000000000000000");
  raw.Zeros(96 - raw.bytes().size());
  EXPECT_NE(ErrorOf(raw), "");
  constexpr std::uint64_t kOne = 1;
  EXPECT_THAT(ErrorOf(OneTensor({kOne << 62, 4}, 0, 96)), HasSubstr("more than 2^64 bytes"));
  EXPECT_THAT(ErrorOf(OneTensor({kMaxU64, 2}, 0, 96)), HasSubstr("more than 2^64 bytes"));
  EXPECT_THAT(ErrorOf(OneTensor({(kOne << 42) + 1, kOne << 22}, 0, 96)),
              HasSubstr("more than 2^64 bytes"));
  EXPECT_THAT(ErrorOf(OneTensor({kOne << 62}, 0, 96)), HasSubstr("more than 2^64 bytes"));
  EXPECT_THAT(ErrorOf(OneTensor({kOne << 61}, 0, 96)), HasSubstr("takes 9223372036854775808"));
  EXPECT_THAT(ErrorOf(OneTensor({33}, 2, 96)), HasSubstr("Q4_0 needs a multiple of 32"));
  EXPECT_THAT(ErrorOf(OneTensor({255, 256}, 12, 96)), HasSubstr("Q4_K needs a multiple of 256"));
  EXPECT_THAT(ErrorOf(OneTensor({4, 0}, 0, 96)), HasSubstr("dimension of 0"));
}

// Case C131: no dimension, five, 2^32 − 1.
TEST(GgufReaderTest, RankIsOneToFour) {
  EXPECT_EQ(ErrorOf(OneTensor({1, 1, 1, 1}, 0, 32)), "");
  EXPECT_THAT(ErrorOf(OneTensor({1, 1, 1, 1, 1}, 0, 32)), HasSubstr("has 5 dimensions"));
  EXPECT_THAT(ErrorOf(OneTensor({}, 0, 32).Zeros(32)), HasSubstr("has 0 dimensions"));
  RawGguf raw = RawGguf::FromHex(
      "474755460300000001000000000000000000000000000000010000000000000074ffffffff");
  EXPECT_NE(ErrorOf(raw), "");
  EXPECT_THAT(ErrorOf(raw.Zeros(64)), HasSubstr("has 4294967295 dimensions, allowed are 1 to 4"));
}

// Case C133: a name or a key that stands twice.
TEST(GgufReaderTest, DuplicatesAreErrors) {
  RawGguf tensors(2, 0);
  tensors.Tensor("t", {4}, 0, 0).Tensor("t", {4}, 0, 32).PadTo(32).Zeros(64);
  EXPECT_THAT(ErrorOf(tensors), HasSubstr("tensor name 't' stands twice"));
  RawGguf keys(0, 2);
  keys.Key("general.architecture", GgufValueType::kString).String("gpt2");
  keys.Key("general.architecture", GgufValueType::kString).String("llama");
  EXPECT_THAT(ErrorOf(keys), HasSubstr("'general.architecture' stands twice (entries 0 and 1)"));
}

// Case C133: found without comparing all pairs. Quadratic work would take a minute here.
TEST(GgufReaderTest, ManyNamesAreQuick) {
  constexpr std::size_t kCount = 200000;
  for (const bool twice : {false, true}) {
    RawGguf raw(kCount, kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      raw.Key("key." + std::to_string(i), GgufValueType::kBool).Number<std::uint8_t>(0);
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::size_t n = twice && i == kCount - 1 ? 5 : i;
      raw.Tensor("t." + std::to_string(n), {8}, 0, 32 * i);
    }
    raw.PadTo(32).Zeros(32 * kCount);
    EXPECT_EQ(ErrorOf(raw).find("'t.5' stands twice") != std::string::npos, twice);
    EXPECT_EQ(ErrorOf(raw).empty(), !twice);
  }
}

// Case C135: empty and long names, NUL, invalid UTF-8, a bool of 2.
TEST(GgufReaderTest, OddNamesAreErrors) {
  EXPECT_THAT(ErrorOf(RawGguf::FromHex(
                  "4747554603000000000000000000000001000000000000000000000000000000040000000100"
                  "0000")),
              HasSubstr("metadata key '' is 0 bytes long, allowed are 1 to 65535"));
  const auto tensor_named = [](std::string_view name) {
    RawGguf raw(1, 0);
    return ErrorOf(raw.Tensor(name, {8}, 0, 0).PadTo(32).Zeros(32));
  };
  EXPECT_THAT(tensor_named(""), HasSubstr("0 bytes long, allowed are 1 to 63"));
  EXPECT_EQ(tensor_named(std::string(63, 'x')), "");
  EXPECT_THAT(tensor_named(std::string(64, 'x')), HasSubstr("64 bytes long"));
  EXPECT_THAT(tensor_named(std::string(65, 'x')), HasSubstr("65 bytes long"));
  EXPECT_THAT(tensor_named(std::string(10000, 'x')), HasSubstr("10000 bytes long"));
  EXPECT_THAT(tensor_named(std::string_view("a\0b", 3)), HasSubstr("'a\\u0000b' holds a NUL"));
  EXPECT_THAT(tensor_named("a\xFF"), HasSubstr("'a\\xFF' must be UTF-8 (byte 33)"));
  const auto key_named = [](std::string_view key) {
    RawGguf raw(0, 1);
    return ErrorOf(raw.Key(key, GgufValueType::kUint8).Number<std::uint8_t>(0));
  };
  EXPECT_EQ(key_named(std::string(65535, 'k')), "");
  EXPECT_THAT(key_named(std::string(65536, 'k')), HasSubstr("65536 bytes long"));
  EXPECT_THAT(key_named(std::string_view("a\0b", 3)), HasSubstr("NUL"));
  EXPECT_THAT(key_named("\xED\xA0\x80"), HasSubstr("must be UTF-8"));

  RawGguf scalar(0, 1);
  scalar.Key("k", GgufValueType::kBool).Number<std::uint8_t>(2);
  EXPECT_THAT(ErrorOf(scalar), HasSubstr("'k' has the bool 2, must be 0 or 1 (byte 37)"));
  RawGguf array(0, 1);
  array.Key("k", GgufValueType::kArray).Type(GgufValueType::kBool).Number<std::uint64_t>(3);
  array.Number<std::uint8_t>(1).Number<std::uint8_t>(255).Number<std::uint8_t>(0);
  EXPECT_THAT(ErrorOf(array), HasSubstr("has the bool 255, must be 0 or 1 (byte 50)"));
}

TEST(GgufReaderTest, UnknownTypesAndNestedArraysAreErrors) {
  for (const std::uint32_t type : {13u, 255u, 0xFFFFFFFFu}) {
    RawGguf value(0, 1);
    EXPECT_THAT(ErrorOf(value.String("k").Number(type).Zeros(16)), HasSubstr("known are 0 to 12"));
    RawGguf element(0, 1);
    element.Key("k", GgufValueType::kArray).Number(type).Zeros(16);
    EXPECT_THAT(ErrorOf(element), HasSubstr("array element type"));
  }
  RawGguf nested(0, 1);
  nested.Key("k", GgufValueType::kArray).Type(GgufValueType::kArray).Zeros(16);
  EXPECT_THAT(ErrorOf(nested), HasSubstr("array of arrays"));
  for (const std::uint32_t type : {4u, 5u, 31u, 36u, 38u, 42u, 0xFFFFFFFFu}) {
    EXPECT_THAT(ErrorOf(OneTensor({8}, type, 32)), HasSubstr("unknown type"));
  }
}

// A tensor of a type that is only recognised can be looked at, but not taken for numbers.
TEST(GgufReaderTest, QuantisedTensorsAreRecognised) {
  const RawGguf raw = OneTensor({256, 2}, 16, 132);
  const auto file = GgufFile::Parse(raw.bytes(), "m.gguf");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const GgufTensor& tensor = file.value().tensors()[0];
  EXPECT_EQ(InfoOf(tensor.type).name, "IQ2_XXS");
  EXPECT_EQ(tensor.data.size(), 132u);
  EXPECT_EQ(file.value().DTypeOf(tensor).error().message,
            "m.gguf: tensor 't' has type IQ2_XXS, supported are f32, f16, bf16, Q8_0, Q4_0, "
            "Q4_1, Q5_0, Q5_1 and Q2_K to Q6_K");
}

TEST(GgufReaderTest, AlignmentIsAPowerOfTwo) {
  const auto with = [](GgufValueType type, auto value, std::uint64_t second_offset) {
    RawGguf raw(2, 1);
    raw.Key("general.alignment", type).Number(value);
    raw.Tensor("a", {1}, 0, 0).Tensor("b", {1}, 0, second_offset).PadTo(4096).Zeros(512);
    return ErrorOf(raw);
  };
  const auto u32 = GgufValueType::kUint32;
  EXPECT_EQ(with(u32, 8u, 8), "");
  EXPECT_EQ(with(u32, 256u, 256), "");
  EXPECT_THAT(with(u32, 64u, 32), HasSubstr("must be a multiple of the alignment 64"));
  EXPECT_THAT(with(u32, 0u, 32), HasSubstr("is uint32 0, must be a uint32 power of two"));
  EXPECT_THAT(with(u32, 24u, 24), HasSubstr("is uint32 24"));
  EXPECT_THAT(with(GgufValueType::kUint64, std::uint64_t{32}, 32), HasSubstr("is uint64 32"));
  EXPECT_THAT(with(GgufValueType::kInt32, -32, 32), HasSubstr("is int32 -32"));
  // The data section would begin behind the end.
  EXPECT_THAT(with(u32, 0x80000000u, 0), HasSubstr("before its tensor data"));
}

TEST(GgufReaderTest, TensorsLieInsideAndApart) {
  const auto at = [](std::uint64_t first, std::uint64_t second) {
    RawGguf raw(2, 0);
    raw.Tensor("a", {16}, 0, first).Tensor("b", {8}, 0, second).PadTo(32).Zeros(128);
    return ErrorOf(raw);
  };
  EXPECT_EQ(at(0, 64), "");
  EXPECT_EQ(at(32, 0), "");  // In any order.
  EXPECT_EQ(at(0, 96), "");  // With a hole.
  EXPECT_THAT(at(0, 32), HasSubstr("'a' and 'b' overlap"));
  EXPECT_THAT(at(32, 32), HasSubstr("overlap"));
  EXPECT_THAT(at(0, 65), HasSubstr("offset 65, must be a multiple"));
  EXPECT_THAT(at(0, 128), HasSubstr("takes 32 bytes at offset 128"));
  EXPECT_THAT(at(96, 0), HasSubstr("tensor data ends at 128"));
  EXPECT_THAT(at(0, kMaxU64 - 31), HasSubstr("tensor data ends at 128"));
}

TEST(GgufReaderTest, OpenNamesThePathAndKeepsTheMapping) {
  base::Env& env = base::Env::Default();
  const std::string path = testing::TempDir() + "/reader_test.gguf";
  const RawGguf raw = SmallValidFile();
  ASSERT_TRUE(base::WriteFileAtomic(env, path, raw.bytes()).has_value());
  {
    const auto file = GgufFile::Open(env, path);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(file.value().metadata().GetString("general.architecture").value(), "gpt2");
    EXPECT_EQ(std::memcmp(file.value().Find("a")->data.data(),
                          raw.bytes().data() + raw.bytes().size() - 64, 24),
              0);
  }
  base::FaultyEnv faulty(env);
  faulty.TruncateReads(100);
  EXPECT_THAT(GgufFile::Open(faulty, path).error().message, testing::StartsWith(path + ": "));
  faulty.FailOperation(0);
  EXPECT_EQ(GgufFile::Open(faulty, path).error().code, base::ErrorCode::kIo);
  ASSERT_TRUE(env.Remove(path).has_value());
  EXPECT_THAT(GgufFile::Open(env, path).error().message, HasSubstr(path));
}

// The fuzzer's first inputs, each still what its name says.
TEST(GgufReaderTest, SeedsAreReadOrRefusedAsNamed) {
  std::size_t valid = 0, refused = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(KVASIR_SOURCE_DIR "/fuzz/corpus/gguf")) {
    const auto file = GgufFile::Open(base::Env::Default(), entry.path());
    const bool named_valid = entry.path().filename().string().starts_with("valid-");
    EXPECT_EQ(file.has_value(), named_valid) << entry.path();
    ++(file ? valid : refused);
  }
  EXPECT_GE(valid, 4u);
  EXPECT_GE(refused, 15u);
}

// A file that another program wrote, if it is there.
TEST(GgufReaderTest, OpensTheReferenceModel) {
  base::Env& env = base::Env::Default();
  const std::string path = KVASIR_SOURCE_DIR "/../shared/reference/lesson-torch.gguf";
  if (!env.Exists(path)) GTEST_SKIP() << "no reference model here";
  const auto file = GgufFile::Open(env, path);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const GgufMetadata& metadata = file.value().metadata();
  EXPECT_EQ(metadata.GetString("general.architecture").value(), "gpt2");
  EXPECT_EQ(metadata.GetUint("gpt2.block_count").value(), 4u);
  EXPECT_EQ(metadata.GetFloat("gpt2.attention.layer_norm_epsilon").value(), 1e-5f);
  const auto tokens = metadata.GetStringArray("tokenizer.ggml.tokens");
  ASSERT_TRUE(tokens.has_value());
  ASSERT_EQ(tokens.value().size(), 6915u);
  EXPECT_EQ(tokens.value()[2], "</s>");
  EXPECT_EQ(metadata.GetIntArray("tokenizer.ggml.token_type").value()[3], 6);
  EXPECT_EQ(file.value().tensors().size(), 53u);
  EXPECT_EQ(file.value().Find("blk.3.ffn_down.weight")->shape, (Shape{128, 512}));
  EXPECT_EQ(file.value().Find("output.weight")->shape, (Shape{6915, 128}));
}

}  // namespace
}  // namespace kvasir::formats
