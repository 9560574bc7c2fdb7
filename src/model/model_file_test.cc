#include "model/model_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "base/faulty_env.h"
#include "formats/gguf_writer.h"
#include "model/model_test_util.h"
#include "model/vocabulary_reader.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

class ModelFileTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/model_file_test_" + std::to_string(getpid()) + ".gguf";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // A valid file, changed by `change` before it is written.
  void WriteChanged(const std::function<void(formats::GgufWriter&)>& change,
                    const std::string& dropped_tensor = "", const Gpt2Config& shapes = TestConfig(),
                    float poison = 0) {
    formats::GgufWriter writer;
    writer.Set("general.architecture", "gpt2");
    writer.Set("gpt2.context_length", std::uint32_t{48});
    writer.Set("gpt2.embedding_length", std::uint32_t{24});
    writer.Set("gpt2.block_count", std::uint32_t{2});
    writer.Set("gpt2.feed_forward_length", std::uint32_t{40});
    writer.Set("gpt2.attention.head_count", std::uint32_t{2});
    writer.Set("gpt2.attention.layer_norm_epsilon", 1e-5f);
    WriteVocabulary(TestVocabulary(), writer);
    const TensorSource source = RandomSource(0.3f);
    for (const TensorSpec& spec : Gpt2Tensors(shapes)) {
      if (spec.name == dropped_tensor) continue;
      const auto values = source(spec).value();
      std::vector<float> copy(values.begin(), values.end());
      if (spec.name == "blk.1.ffn_up.weight") copy[5] += poison;
      writer.AddTensor(spec.name, spec.shape, tensor::DType::kF32,
                       tensor::ConvertFromF32(tensor::DType::kF32, copy));
    }
    change(writer);
    ASSERT_TRUE(writer.Write(base::Env::Default(), path_).has_value());
  }

  std::string LoadError() {
    const auto result = LoadModel(base::Env::Default(), path_);
    return result ? std::string() : result.error().message;
  }
  void ExpectRefused(const std::function<void(formats::GgufWriter&)>& change,
                     const std::string& named) {
    WriteChanged(change);
    const std::string message = LoadError();
    EXPECT_NE(message.find(named), std::string::npos) << "got: " << message;
    EXPECT_NE(message.find(path_), std::string::npos) << "got: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }

  std::string path_;
};

TEST_F(ModelFileTest, RoundTripsInEveryDType) {
  for (tensor::DType dtype : {tensor::DType::kF32, tensor::DType::kF16, tensor::DType::kBF16}) {
    for (bool tied : {false, true}) {
      Gpt2Config config = TestConfig();
      config.tied_head = tied;
      const TensorSource source = RandomSource(0.3f);
      ASSERT_TRUE(
          SaveGpt2(base::Env::Default(), path_, config, TestVocabulary(), source, {"tiny", dtype})
              .has_value());
      const auto loaded = LoadGpt2(base::Env::Default(), path_).value();
      EXPECT_EQ(loaded.name, "tiny");
      EXPECT_EQ(loaded.model->config(), config);
      EXPECT_EQ(loaded.model->shape().parameters, ParameterCount(config));
      for (const TensorSpec& spec : Gpt2Tensors(config)) {
        const auto values = source(spec).value();
        const bool matrix = spec.shape.rank() == 2 && spec.name != "position_embd.weight";
        std::vector<float> expected(values.size());
        const tensor::DType stored = matrix ? dtype : tensor::DType::kF32;
        tensor::ConvertToF32(stored, tensor::ConvertFromF32(stored, values), expected);
        EXPECT_EQ(loaded.model->TensorValues(spec), expected) << spec.name;
      }
    }
  }
}

TEST_F(ModelFileTest, TokenizerComesWithTheModel) {
  WriteChanged([](auto&) {});
  const auto loaded = LoadModel(base::Env::Default(), path_).value();
  EXPECT_EQ(loaded.tokenizer->Encode("一七").value().size(), 2u);
  EXPECT_EQ(loaded.tokenizer->Encode("🐉").value().size(), 4u);
  EXPECT_EQ(loaded.name, std::filesystem::path(path_).stem().string());
}

// Case C139, and whatever else the metadata can say.
TEST_F(ModelFileTest, RefusesBadMetadata) {
  const auto set = [](const char* key, auto value) {
    return [key, value](formats::GgufWriter& writer) { writer.Set(key, value); };
  };
  ExpectRefused(set("general.architecture", "mamba"), "'mamba'");
  ExpectRefused(set("gpt2.attention.head_count", std::uint32_t{0}), "head_count is 0");
  ExpectRefused(set("gpt2.attention.head_count", std::uint32_t{5}), "head_count 5");
  ExpectRefused(set("gpt2.attention.head_count_kv", std::uint32_t{1}), "head_count_kv is 1");
  ExpectRefused(set("gpt2.block_count", std::uint32_t{0}), "block_count is 0");
  ExpectRefused(set("gpt2.block_count", std::uint64_t{1} << 31), "block_count is 2147483648");
  ExpectRefused(set("gpt2.block_count", std::uint32_t{3}), "blk.2.");
  ExpectRefused(set("gpt2.context_length", std::uint32_t{0}), "context_length is 0");
  ExpectRefused(set("gpt2.context_length", std::uint64_t{1} << 63), "context_length is");
  ExpectRefused(set("gpt2.context_length", std::uint32_t{49}), "position_embd.weight");
  ExpectRefused(set("gpt2.embedding_length", std::uint32_t{0}), "embedding_length is 0");
  ExpectRefused(set("gpt2.embedding_length", "24"), "embedding_length");
  ExpectRefused(set("gpt2.feed_forward_length", std::uint32_t{0}), "feed_forward_length is 0");
  for (float eps : {0.0f, -1.0f, NAN, INFINITY}) {
    ExpectRefused(set("gpt2.attention.layer_norm_epsilon", eps), "layer_norm_epsilon");
  }
  ExpectRefused(set("gpt2.logit_scale", 2.0f), "'gpt2.logit_scale' is 2; only 1 is supported");
  ExpectRefused(set("gpt2.attention.sliding_window", std::uint32_t{9}), "sliding_window");
  ExpectRefused(set("gpt2.vocab_size", std::uint32_t{266}), "gpt2.vocab_size is 266");
  ExpectRefused(set("tokenizer.ggml.model", "rwkv"), "tokenizer.ggml.model");
}

// Case C137.
TEST_F(ModelFileTest, RefusesSpecialIdsOutsideTheVocabulary) {
  for (const char* key : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                          "tokenizer.ggml.unknown_token_id"}) {
    for (std::uint32_t id : {267u, 4294967295u}) {
      WriteChanged([&](formats::GgufWriter& writer) { writer.Set(key, id); });
      EXPECT_NE(LoadError().find(std::to_string(id)), std::string::npos) << key;
    }
    WriteChanged([&](formats::GgufWriter& writer) { writer.Set(key, "1"); });
    EXPECT_NE(LoadError().find(key), std::string::npos);
  }
}

TEST_F(ModelFileTest, RefusesBadTensors) {
  WriteChanged([](auto&) {}, "blk.1.attn_qkv.bias");
  EXPECT_NE(LoadError().find("blk.1.attn_qkv.bias"), std::string::npos);
  Gpt2Config wide = TestConfig();
  wide.feed_forward = 41;
  WriteChanged([](auto&) {}, "", wide);
  EXPECT_NE(LoadError().find("[41, 24]"), std::string::npos) << LoadError();
  // Case C29: more rows than tokens.
  Gpt2Config padded = TestConfig();
  padded.vocab = 272;
  WriteChanged([](auto&) {}, "", padded);
  EXPECT_NE(LoadError().find("token_embd.weight"), std::string::npos) << LoadError();
  WriteChanged([](auto&) {}, "", TestConfig(), std::numeric_limits<float>::infinity());
  EXPECT_NE(LoadError().find("blk.1.ffn_up.weight"), std::string::npos) << LoadError();
}

TEST_F(ModelFileTest, EveryCutFileIsRefused) {
  WriteChanged([](auto&) {});
  const std::size_t size = base::Env::Default().Map(path_).value()->bytes().size();
  for (std::size_t cut = 0; cut < size; cut += cut < 256 ? 1 : 997) {
    base::FaultyEnv env(base::Env::Default());
    env.TruncateReads(cut);
    EXPECT_FALSE(LoadModel(env, path_).has_value()) << cut;
  }
}

TEST_F(ModelFileTest, AFailedSaveKeepsTheOldModel) {
  WriteChanged([](auto&) {});
  base::FaultyEnv env(base::Env::Default());
  env.LimitBytes(1000);
  EXPECT_FALSE(SaveGpt2(env, path_, TestConfig(), TestVocabulary(), RandomSource(1),
                        {"tiny", tensor::DType::kF32})
                   .has_value());
  EXPECT_EQ(LoadError(), "");
}

}  // namespace
}  // namespace kvasir::model
