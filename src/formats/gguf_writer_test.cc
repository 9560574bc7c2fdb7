#include "formats/gguf_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/faulty_env.h"
#include "formats/gguf_reader.h"
#include "tensor/convert.h"

namespace kvasir::formats {
namespace {

using tensor::DType;
using tensor::Shape;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<float> kValues = {0.5f, -1.0f, 2.0f, 3.0f, 4.0f, 65504.0f};

GgufWriter SmallModel() {
  GgufWriter writer;
  writer.Set("general.architecture", "gpt2");
  writer.Set("u32", std::uint32_t{128});
  writer.Set("u64", std::uint64_t{1} << 40);
  writer.Set("i32", -1);
  writer.Set("eps", 1e-5f);
  writer.Set("flag", false);
  writer.Set("text", std::string_view("春风\n"));
  writer.Set("words", std::vector<std::string>{"<unk>", "", "春"});
  writer.Set("views", std::vector<std::string_view>{"a"});
  writer.Set("floats", std::vector<float>{0.0f, -2.5f});
  writer.Set("ints", std::vector<std::int32_t>{2, -3});
  writer.Set("uints", std::vector<std::uint32_t>{});
  writer.AddTensor("a", Shape{2, 3}, DType::kF32, tensor::ConvertFromF32(DType::kF32, kValues));
  writer.AddTensor("b", Shape{6}, DType::kF16, tensor::ConvertFromF32(DType::kF16, kValues));
  writer.AddTensor("c", Shape{1, 2, 1, 3}, DType::kBF16,
                   tensor::ConvertFromF32(DType::kBF16, kValues));
  return writer;
}

class GgufWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/gguf_writer_test_" + std::to_string(getpid());
    ASSERT_TRUE(base::Env::Default().MakeDirectories(directory_).has_value());
    path_ = directory_ + "/model.gguf";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Read() { return std::string(base::Env::Default().Map(path_).value()->text()); }
  std::size_t FilesThere() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
  std::string directory_, path_;
};

TEST_F(GgufWriterTest, ListsOfBoolsRoundTrip) {
  GgufWriter writer;
  writer.Set("pattern", std::vector<bool>{true, false, true});
  writer.Set("none", std::vector<bool>{});
  writer.Set("number", std::uint32_t{1});
  const auto bytes = writer.Encode().value();
  const auto file = GgufFile::Parse(bytes, "test").value();
  const GgufMetadata& metadata = file.metadata();
  EXPECT_THAT(metadata.Find("pattern")->AsBoolArray().value(), ElementsAre(true, false, true));
  EXPECT_EQ(metadata.Find("pattern")->TypeText(), "array of 3 bool");
  EXPECT_THAT(metadata.Find("none")->AsBoolArray().value(), ElementsAre());
  EXPECT_FALSE(metadata.Find("number")->AsBoolArray().has_value());
  EXPECT_FALSE(metadata.Find("pattern")->AsIntArray().has_value());
}

TEST_F(GgufWriterTest, RoundTrip) {
  ASSERT_TRUE(SmallModel().Write(base::Env::Default(), path_).has_value());
  const auto opened = GgufFile::Open(base::Env::Default(), path_);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const GgufFile& file = opened.value();
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(metadata.entries().size(), 12u);
  EXPECT_EQ(metadata.entries()[0].key, "general.architecture");
  EXPECT_EQ(metadata.entries()[11].key, "uints");
  EXPECT_EQ(metadata.GetString("general.architecture").value(), "gpt2");
  EXPECT_EQ(metadata.GetUint("u32").value(), 128u);
  EXPECT_EQ(metadata.GetUint("u64").value(), std::uint64_t{1} << 40);
  EXPECT_EQ(metadata.GetInt("i32").value(), -1);
  EXPECT_EQ(metadata.GetFloat("eps").value(), 1e-5f);
  EXPECT_EQ(metadata.GetBool("flag").value(), false);
  EXPECT_EQ(metadata.GetString("text").value(), "春风\n");
  EXPECT_THAT(metadata.GetStringArray("words").value(), ElementsAre("<unk>", "", "春"));
  EXPECT_THAT(metadata.GetStringArray("views").value(), ElementsAre("a"));
  EXPECT_THAT(metadata.GetFloatArray("floats").value(), ElementsAre(0.0f, -2.5f));
  EXPECT_THAT(metadata.GetIntArray("ints").value(), ElementsAre(2, -3));
  EXPECT_EQ(metadata.Find("uints")->TypeText(), "array of 0 uint32");

  ASSERT_EQ(file.tensors().size(), 3u);
  const std::vector<Shape> shapes = {Shape{2, 3}, Shape{6}, Shape{1, 2, 1, 3}};
  for (std::size_t i = 0; i < 3; ++i) {
    const GgufTensor& tensor = file.tensors()[i];
    EXPECT_EQ(tensor.shape, shapes[i]);
    std::vector<float> values(6);
    const DType dtype = file.DTypeOf(tensor).value();
    tensor::ConvertToF32(dtype, tensor.data, values);
    if (dtype == DType::kBF16) values[5] = 65504.0f;  // Not a bf16.
    EXPECT_EQ(values, kValues) << tensor.name;
  }
}

// The layout is fixed, so the same calls give the same bytes, and other programs' readers, which
// want the data section whole, find its padding.
TEST_F(GgufWriterTest, BytesAreFixed) {
  GgufWriter writer;
  writer.Set("k", true);
  writer.AddTensor("t", Shape{1, 2}, DType::kF16, std::vector<std::byte>(4, std::byte{0xAB}));
  const auto bytes = writer.Encode();
  ASSERT_TRUE(bytes.has_value());
  std::string hex;
  for (const std::byte b : bytes.value()) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
  EXPECT_EQ(hex,
            "4747554603000000"                  // GGUF, version 3
            "01000000000000000100000000000000"  // one tensor, one entry
            "01000000000000006b0700000001"      // "k", bool, 1
            "010000000000000074"                // "t"
            "0200000002000000000000000100000000000000"
            "010000000000000000000000"  // f16, offset 0
            "0000000000000000000000000000000000"
            "abababab"
            "00000000000000000000000000000000000000000000000000000000");
  EXPECT_EQ(bytes.value().size() % 32, 0u);
  EXPECT_EQ(SmallModel().Encode().value(), SmallModel().Encode().value());
}

TEST_F(GgufWriterTest, SettingAgainReplacesInPlace) {
  GgufWriter writer;
  writer.Set("a", std::uint32_t{1});
  writer.Set("b", std::uint32_t{2});
  writer.Set("a", "one");
  const auto bytes = writer.Encode().value();
  const auto file = GgufFile::Parse(bytes, "m");
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(file.value().metadata().entries().size(), 2u);
  EXPECT_EQ(file.value().metadata().entries()[0].key, "a");
  EXPECT_EQ(file.value().metadata().GetString("a").value(), "one");
}

TEST_F(GgufWriterTest, ViewsAreNotCopied) {
  std::vector<std::byte> data(8, std::byte{1});
  GgufWriter writer;
  writer.AddTensorView("t", Shape{2}, DType::kF32, data);
  data[0] = std::byte{9};
  const auto bytes = writer.Encode().value();
  const auto file = GgufFile::Parse(bytes, "m");
  EXPECT_EQ(file.value().Find("t")->data.front(), std::byte{9});
}

TEST_F(GgufWriterTest, WhatNoReaderTakesIsRefused) {
  const auto error_of = [](const GgufWriter& writer) {
    const auto bytes = writer.Encode();
    if (bytes) return std::string();
    EXPECT_EQ(bytes.error().code, base::ErrorCode::kUsage);
    return bytes.error().message;
  };
  const auto tensor = [&](std::string_view name, Shape shape, std::size_t size) {
    GgufWriter writer;
    writer.AddTensor(name, shape, DType::kF32, std::vector<std::byte>(size));
    return error_of(writer);
  };
  EXPECT_EQ(tensor(std::string(63, 'n'), Shape{2}, 8), "");
  EXPECT_THAT(tensor(std::string(64, 'n'), Shape{2}, 8), HasSubstr("64 bytes long"));
  EXPECT_THAT(tensor("", Shape{2}, 8), HasSubstr("0 bytes long"));
  EXPECT_THAT(tensor("t", Shape{2}, 7), HasSubstr("shape [2] in f32 was given 7 bytes"));
  EXPECT_THAT(tensor("t", Shape{}, 4), HasSubstr("1 to 4 dimensions"));
  EXPECT_THAT(tensor("t", Shape{0}, 0), HasSubstr("each at least 1"));
  EXPECT_THAT(tensor("t", Shape{std::uint64_t{1} << 62, 4}, 0), HasSubstr("given 0 bytes"));
  EXPECT_THAT(tensor("t", Shape{std::uint64_t{1} << 62}, 0), HasSubstr("given 0 bytes"));
  const auto blocks = [&](Shape shape, std::size_t size) {
    GgufWriter writer;
    writer.AddTensor("t", shape, DType::kQ8_0, std::vector<std::byte>(size));
    return error_of(writer);
  };
  EXPECT_EQ(blocks(Shape{3, 64}, 3 * 2 * 34), "");
  EXPECT_THAT(blocks(Shape{3, 64}, 3 * 2 * 34 - 1), HasSubstr("[3, 64] in Q8_0 was given 203"));
  EXPECT_THAT(blocks(Shape{32, 3}, 3 * 34), HasSubstr("the last a multiple of 32"));
  const auto key = [&](std::string_view text) {
    GgufWriter writer;
    writer.Set(text, true);
    return error_of(writer);
  };
  EXPECT_THAT(key(""), HasSubstr("metadata key '' is 0 bytes long"));
  EXPECT_THAT(key("\xFF"), HasSubstr("UTF-8"));
  EXPECT_THAT(key("general.alignment"), HasSubstr("always 32"));
  GgufWriter twice;
  twice.AddTensor("t", Shape{1}, DType::kF32, std::vector<std::byte>(4));
  twice.AddTensor("t", Shape{1}, DType::kF32, std::vector<std::byte>(4));
  EXPECT_THAT(error_of(twice), HasSubstr("'t' was added twice"));
}

// At whichever operation it fails, the old file stays whole and no litter is left.
TEST_F(GgufWriterTest, OldFileSurvivesEveryFault) {
  ASSERT_TRUE(SmallModel().Write(base::Env::Default(), path_).has_value());
  const std::string old = Read();
  GgufWriter changed = SmallModel();
  changed.Set("general.name", "new");
  base::FaultyEnv counting(base::Env::Default());
  ASSERT_TRUE(SmallModel().Write(counting, path_).has_value());
  ASSERT_GE(counting.operations(), 5u);
  for (std::uint64_t i = 0; i < counting.operations(); ++i) {
    base::FaultyEnv faulty(base::Env::Default());
    faulty.FailOperation(i);
    EXPECT_FALSE(changed.Write(faulty, path_).has_value()) << i;
    EXPECT_EQ(Read(), old);
    EXPECT_EQ(FilesThere(), 1u);
  }
  for (std::uint64_t bytes = 0; bytes < old.size(); bytes += 97) {
    base::FaultyEnv full(base::Env::Default());
    full.LimitBytes(bytes);
    EXPECT_FALSE(changed.Write(full, path_).has_value());
    EXPECT_EQ(Read(), old);
    EXPECT_EQ(FilesThere(), 1u);
  }
  ASSERT_TRUE(changed.Write(base::Env::Default(), path_).has_value());
  EXPECT_NE(Read(), old);
}

}  // namespace
}  // namespace kvasir::formats
