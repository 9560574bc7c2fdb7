#include "model/convert_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/faulty_env.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "formats/raw_llama2c.h"
#include "model/model_file.h"
#include "model/model_test_util.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using tensor::DType;
using ::testing::HasSubstr;

constexpr formats::Llama2cConfig kSmall = {
    .dim = 16, .hidden_dim = 12, .layers = 2, .heads = 4, .kv_heads = 2, .vocab = 6, .context = 8};

class ConvertFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/convert_file_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    Write("model.bin", formats::RawLlama2cModel(formats::Llama2cHeader(kSmall),
                                                formats::Llama2cFloats(kSmall), Weight));
    Write("tok.bin",
          formats::RawLlama2cTokenizer(
              7, {{"<unk>", 0}, {"\n<s>\n", 0}, {"\n</s>\n", 0}, {" ", -2}, {"a", -1}, {" a", 0}}));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static float Weight(std::size_t i) { return static_cast<float>(i % 23) / 64 - 0.2F; }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const formats::RawBytes& bytes) const {
    ASSERT_TRUE(base::WriteFileAtomic(env_, Path(name), std::span<const std::byte>(bytes)));
  }
  base::Result<ConvertReport> Convert(const std::string& in, const std::string& out,
                                      std::optional<DType> dtype = {},
                                      const std::string& tokens = "") const {
    return ConvertFile(env_, Path(in), Path(out),
                       {.tokenizer = tokens.empty() ? "" : Path(tokens), .dtype = dtype});
  }
  void Refused(const base::Result<ConvertReport>& converted, ErrorCode code,
               const std::string& why) const {
    ASSERT_FALSE(converted.has_value()) << why;
    EXPECT_EQ(converted.error().code, code) << converted.error().message;
    EXPECT_THAT(converted.error().message, HasSubstr(why));
    EXPECT_EQ(converted.error().message.find('\n'), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(Path("out.gguf")));
  }

  base::Env& env_ = base::Env::Default();
  std::string folder_;
};

TEST_F(ConvertFileTest, Llama2cBecomesALlamaThatLoads) {
  for (const auto dtype : {std::optional<DType>(), std::optional(DType::kF16)}) {
    ASSERT_TRUE(Convert("model.bin", "out.gguf", dtype, "tok.bin").has_value());
    const auto loaded = LoadModel(env_, Path("out.gguf")).value();
    EXPECT_EQ(loaded.name, "model");
    const ModelShape& shape = loaded.model->shape();
    EXPECT_EQ(shape.architecture, "llama");
    EXPECT_EQ(shape.kv_heads, 2u);
    EXPECT_EQ(shape.head_dim, 4u);
    EXPECT_EQ(shape.context, 8u);
    EXPECT_EQ(loaded.tokenizer->Encode("a").value(), (std::vector<base::TokenId>{5}));
    const auto file = formats::GgufFile::Open(env_, Path("out.gguf")).value();
    const auto* gate = file.Get("blk.1.ffn_gate.weight").value();
    EXPECT_EQ(file.DTypeOf(*gate).value(), dtype.value_or(DType::kF32));
    EXPECT_EQ(file.DTypeOf(*file.Get("output_norm.weight").value()).value(), DType::kF32);
  }
}

TEST_F(ConvertFileTest, GgufChangesItsElementTypeAndNothingElse) {
  ASSERT_TRUE(SaveGpt2(env_, Path("in.gguf"), TestConfig(), TestVocabulary(), RandomSource(0.3F),
                       {"tiny", DType::kF32})
                  .has_value());
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    // As if it had been saved so.
    ASSERT_TRUE(Convert("in.gguf", "out.gguf", dtype).has_value());
    ASSERT_TRUE(SaveGpt2(env_, Path("saved.gguf"), TestConfig(), TestVocabulary(),
                         RandomSource(0.3F), {"tiny", dtype})
                    .has_value());
    EXPECT_EQ(env_.Map(Path("out.gguf")).value()->text(),
              env_.Map(Path("saved.gguf")).value()->text());
    // Without a type: the same file again. Over itself, and back to f32: what rounding left.
    ASSERT_TRUE(Convert("out.gguf", "same.gguf").has_value());
    EXPECT_EQ(env_.Map(Path("same.gguf")).value()->text(),
              env_.Map(Path("out.gguf")).value()->text());
    ASSERT_TRUE(Convert("same.gguf", "same.gguf", DType::kF32).has_value());
    EXPECT_TRUE(LoadModel(env_, Path("same.gguf")).has_value());
  }
}

TEST_F(ConvertFileTest, MatricesOfWholeBlocksAreRounded) {
  Gpt2Config config = TestConfig();
  config.embedding = 64;  // The MLP's middle, 40, is no whole block: rows of ffn_down.
  ASSERT_TRUE(SaveGpt2(env_, Path("in.gguf"), config, TestVocabulary(), RandomSource(0.3F),
                       {"tiny", DType::kF32})
                  .has_value());
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    const auto report = Convert("in.gguf", "out.gguf", dtype);
    ASSERT_TRUE(report.has_value());
    EXPECT_THAT(report.value().kept,
                testing::ElementsAre("blk.0.ffn_down.weight", "blk.1.ffn_down.weight"));
    ASSERT_TRUE(SaveGpt2(env_, Path("saved.gguf"), config, TestVocabulary(), RandomSource(0.3F),
                         {"tiny", dtype})
                    .has_value());
    EXPECT_TRUE(LoadModel(env_, Path("out.gguf")).value().model->shape().rounded());
    const auto file = formats::GgufFile::Open(env_, Path("out.gguf")).value();
    const auto saved = formats::GgufFile::Open(env_, Path("saved.gguf")).value();
    EXPECT_EQ(file.metadata().GetUint("general.quantization_version").value(), 2u);
    EXPECT_EQ(file.metadata().GetUint("general.file_type").value(),
              dtype == DType::kQ8_0 ? 7u : 2u);
    const auto type = [&](const char* name) {
      return file.DTypeOf(*file.Get(name).value()).value();
    };
    EXPECT_EQ(type("token_embd.weight"), dtype);
    EXPECT_EQ(type("blk.0.ffn_up.weight"), dtype);
    EXPECT_EQ(type("blk.0.ffn_down.weight"), DType::kF32);
    EXPECT_EQ(type("position_embd.weight"), DType::kF32);
    EXPECT_EQ(type("blk.0.attn_norm.weight"), DType::kF32);
    for (const formats::GgufTensor& tensor : saved.tensors()) {
      const auto* converted = file.Get(tensor.name).value();
      EXPECT_TRUE(std::equal(tensor.data.begin(), tensor.data.end(), converted->data.begin(),
                             converted->data.end()))
          << tensor.name;
    }
    // Back to f32: the numbers that the blocks mean, and nothing said of blocks.
    ASSERT_TRUE(Convert("out.gguf", "back.gguf", DType::kF32).has_value());
    const auto back = formats::GgufFile::Open(env_, Path("back.gguf")).value();
    EXPECT_FALSE(back.metadata().Has("general.quantization_version"));
    const auto* blocks = file.Get("blk.1.ffn_up.weight").value();
    std::vector<float> expected(blocks->shape.ElementCount().value()), got(expected.size());
    tensor::ConvertToF32(dtype, blocks->data, expected);
    tensor::ConvertToF32(DType::kF32, back.Get("blk.1.ffn_up.weight").value()->data, got);
    EXPECT_EQ(got, expected);
    // A matrix that is not rounded keeps the type it has.
    ASSERT_TRUE(Convert("in.gguf", "f16.gguf", DType::kF16).has_value());
    ASSERT_TRUE(Convert("f16.gguf", "out.gguf", dtype).has_value());
    const auto halves = formats::GgufFile::Open(env_, Path("out.gguf")).value();
    EXPECT_EQ(halves.DTypeOf(*halves.Get("blk.0.ffn_down.weight").value()).value(), DType::kF16);
  }
}

TEST_F(ConvertFileTest, MetadataOfEveryTypeAreKept) {
  formats::GgufWriter writer;
  writer.Set("general.architecture", "rwkv");
  writer.Set("a.text", "春风");
  writer.Set("a.number", std::uint64_t{1} << 40);
  writer.Set("a.flag", true);
  writer.Set("a.flags", std::vector<bool>{true, false});
  const std::vector<std::string> texts = {"", "b c"};
  writer.Set("a.texts", std::span<const std::string>(texts));
  const std::vector<float> numbers = {1, 2};
  writer.Set("a.numbers", std::span<const float>(numbers));
  writer.AddTensor("t", {2}, DType::kF32, tensor::ConvertFromF32(DType::kF32, numbers));
  ASSERT_TRUE(writer.Write(env_, Path("in.gguf")).has_value());
  ASSERT_TRUE(Convert("in.gguf", "out.gguf").has_value());
  EXPECT_EQ(env_.Map(Path("out.gguf")).value()->text(), env_.Map(Path("in.gguf")).value()->text());
}

TEST_F(ConvertFileTest, RefusesBadInput) {
  Refused(Convert("missing.bin", "out.gguf"), ErrorCode::kIo, "missing.bin");
  Refused(Convert("model.bin", "out.gguf"), ErrorCode::kUsage, "holds no vocabulary");
  Refused(Convert("model.bin", "out.gguf", {}, "missing.bin"), ErrorCode::kIo, "missing.bin");
  Refused(Convert("model.bin", "out.bin", {}, "tok.bin"), ErrorCode::kUsage, "written are GGUF");
  Refused(Convert("model.bin", "out.safetensors", {}, "tok.bin"), ErrorCode::kUsage,
          "written are GGUF");
  Refused(Convert("model.bin", "out.gguf", {}, "model.bin"), ErrorCode::kBadData, "model.bin");
  Refused(Convert("tok.bin", "out.gguf", {}, "tok.bin"), ErrorCode::kBadData, "tok.bin");
  // The model's five rows and the tokenizer's six tokens, or seven.
  for (const std::uint64_t vocab : {5u, 7u}) {
    formats::Llama2cConfig other = kSmall;
    other.vocab = vocab;
    Write("other.bin", formats::RawLlama2cModel(formats::Llama2cHeader(other),
                                                formats::Llama2cFloats(other), Weight));
    Refused(
        Convert("other.bin", "out.gguf", {}, "tok.bin"), ErrorCode::kBadData,
        vocab == 5 ? "6 tokens, more than the model's 5" : "6 tokens, fewer than the model's 7");
  }
  Write("garbage.gguf", {std::byte{'G'}, std::byte{'G'}, std::byte{'U'}, std::byte{'F'}});
  Refused(Convert("garbage.gguf", "out.gguf", {}, "tok.bin"), ErrorCode::kBadData, "garbage.gguf");
  Write("latin.bin", formats::RawLlama2cTokenizer(
                         6, {{"u", 0}, {"s", 0}, {"e", 0}, {"a", 0}, {"\xFF", 0}, {"b", 0}}));
  Refused(Convert("model.bin", "out.gguf", {}, "latin.bin"), ErrorCode::kBadData,
          "token 4 is not valid UTF-8");
}

TEST_F(ConvertFileTest, RefusesNumbersThatDoNotFit) {
  const auto poisoned = [&](float poison) {
    Write("poisoned.bin",
          formats::RawLlama2cModel(formats::Llama2cHeader(kSmall), formats::Llama2cFloats(kSmall),
                                   [&](std::size_t i) { return i == 3 ? poison : Weight(i); }));
  };
  poisoned(1e6F);
  Refused(Convert("poisoned.bin", "out.gguf", DType::kF16, "tok.bin"), ErrorCode::kBadData,
          "tensor 'token_embd.weight' holds a number too large for f16");
  ASSERT_TRUE(Convert("poisoned.bin", "large.gguf", DType::kF32, "tok.bin").has_value());
  Refused(Convert("large.gguf", "out.gguf", DType::kF16), ErrorCode::kBadData,
          "large.gguf': tensor 'token_embd.weight' holds a number too large for f16");
  ASSERT_TRUE(Convert("large.gguf", "bf16.gguf", DType::kBF16).has_value());
  // Rows of 16 numbers are kept; a number of 1e6 would have fitted a scale.
  const auto kept = Convert("large.gguf", "q8.gguf", DType::kQ8_0);
  EXPECT_EQ(kept.value().kept.front(), "token_embd.weight");
  Refused(Convert("large.gguf", "out.gguf", {}, "tok.bin"), ErrorCode::kUsage, "its own");
  poisoned(std::numeric_limits<float>::infinity());
  Refused(Convert("poisoned.bin", "out.gguf", {}, "tok.bin"), ErrorCode::kBadData, "not finite");
}

TEST_F(ConvertFileTest, AFullDiskLeavesTheOldFile) {
  Write("out.gguf", formats::RawBytes(5, std::byte{'x'}));
  for (const std::uint64_t bytes : {0u, 1u, 1000u}) {
    base::FaultyEnv env(env_);
    env.LimitBytes(bytes);
    const auto converted = ConvertFile(env, Path("model.bin"), Path("out.gguf"),
                                       {.tokenizer = Path("tok.bin"), .dtype = {}});
    ASSERT_FALSE(converted.has_value());
    EXPECT_EQ(converted.error().code, ErrorCode::kIo);
    EXPECT_EQ(env_.Map(Path("out.gguf")).value()->text(), "xxxxx");
  }
}

}  // namespace
}  // namespace kvasir::model
