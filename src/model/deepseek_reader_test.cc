// Files of the deepseek2 architecture: both forms of the metadata, and whatever can be wrong.
#include "model/deepseek_reader.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>

#include "formats/gguf_writer.h"
#include "model/model_file.h"
#include "model/model_test_util.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using formats::GgufWriter;

constexpr std::size_t kVocab = 29;

DeepseekConfig FileConfig() {
  DeepseekConfig config;
  config.layers = 2;
  config.heads = 3;
  config.embedding = 16;
  config.feed_forward = 20;
  config.context = 48;
  config.vocab = kVocab;
  config.latent_dim = 12;
  config.nope_dim = 6;
  config.value_dim = 5;
  config.norm_eps = 1e-5f;
  config.rope.dimensions = 4;
  return config;
}

// Metadata in the format's older form.
void SetMetadata(GgufWriter& writer, const DeepseekConfig& c) {
  const auto set = [&](const char* name, std::uint64_t value) {
    writer.Set("deepseek2." + std::string(name), static_cast<std::uint32_t>(value));
  };
  writer.Set("general.architecture", "deepseek2");
  set("block_count", c.layers);
  set("context_length", c.context);
  set("embedding_length", c.embedding);
  set("feed_forward_length", c.feed_forward);
  set("attention.head_count", c.heads);
  set("attention.head_count_kv", c.heads);
  set("attention.kv_lora_rank", c.latent_dim);
  set("attention.key_length", c.key_dim());
  set("attention.value_length", c.value_dim);
  set("rope.dimension_count", c.rope.dimensions);
  set("leading_dense_block_count", c.layers);
  if (c.query_rank != 0) set("attention.q_lora_rank", c.query_rank);
  writer.Set("deepseek2.rope.freq_base", c.rope.base);
  writer.Set("deepseek2.attention.layer_norm_rms_epsilon", c.norm_eps);
}

struct Written {
  DeepseekConfig tensors = FileConfig();  // Their shapes, and the metadata before `change`.
  std::string dropped = "";               // A tensor that is left out.
  std::string poisoned = "";              // One that holds an infinity.
  tensor::DType dtype = tensor::DType::kF32;
};

std::vector<std::byte> FileBytes(const std::function<void(GgufWriter&)>& change,
                                 const Written& written = {}) {
  GgufWriter writer;
  SetMetadata(writer, written.tensors);
  const TensorSource source = RandomSource(0.3f);
  for (const TensorSpec& spec : DeepseekTensors(written.tensors)) {
    if (spec.name == written.dropped) continue;
    const auto values = source(spec).value();
    std::vector<float> copy(values.begin(), values.end());
    if (spec.name == written.poisoned) copy[3] = INFINITY;
    writer.AddTensor(spec.name, spec.shape, written.dtype,
                     tensor::ConvertFromF32(written.dtype, copy));
  }
  change(writer);
  return writer.Encode().value();
}

base::Result<std::unique_ptr<DeepseekModel>> Read(std::span<const std::byte> bytes,
                                                  std::size_t vocab = kVocab) {
  KV_TRY(const auto file, formats::GgufFile::Parse(bytes, "test.gguf"));
  return ReadDeepseek(file, vocab);
}

void Nothing(GgufWriter&) {}

// Expects one line that holds `named`.
void ExpectRefused(const std::function<void(GgufWriter&)>& change, const std::string& named,
                   const Written& written = {}) {
  const auto result = Read(FileBytes(change, written));
  ASSERT_FALSE(result.has_value()) << named;
  EXPECT_EQ(result.error().code, base::ErrorCode::kBadData);
  EXPECT_NE(result.error().message.find(named), std::string::npos) << result.error().message;
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
}

std::function<void(GgufWriter&)> Set(const char* name, auto value) {
  return [name, value](GgufWriter& writer) { writer.Set("deepseek2." + std::string(name), value); };
}

TEST(DeepseekReaderTest, ReadsWhatTheFileSays) {
  for (const std::uint64_t query_rank : {0u, 10u}) {
    for (const bool split : {false, true}) {
      for (const bool tied : {false, true}) {
        Written written;
        written.tensors.query_rank = query_rank;
        written.tensors.split_up = split;
        written.tensors.tied_head = tied;
        const auto model = Read(FileBytes(Nothing, written));
        ASSERT_TRUE(model.has_value()) << model.error().message;
        EXPECT_EQ(model.value()->config(), written.tensors);
        EXPECT_EQ(model.value()->shape().parameters, ParameterCount(written.tensors));
        EXPECT_EQ(model.value()->shape().architecture, "deepseek2");
      }
    }
  }
}

// In the newer form key_length and value_length are those of the cached entry.
TEST(DeepseekReaderTest, ReadsTheNewerForm) {
  const auto newer = [](GgufWriter& writer) {
    writer.Set("deepseek2.attention.head_count_kv", std::uint32_t{1});
    writer.Set("deepseek2.attention.q_lora_rank", std::uint32_t{0});
    writer.Set("deepseek2.attention.key_length", std::uint32_t{12 + 4});
    writer.Set("deepseek2.attention.value_length", std::uint32_t{12});
    writer.Set("deepseek2.attention.key_length_mla", std::uint32_t{6 + 4});
    writer.Set("deepseek2.attention.value_length_mla", std::uint32_t{5});
    writer.Set("deepseek2.rope.scaling.type", "none");
    writer.Set("deepseek2.expert_count", std::uint32_t{0});
  };
  const auto model = Read(FileBytes(newer));
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model.value()->config(), FileConfig());
  const auto changed = [&](const char* name, std::uint32_t value) {
    return [&newer, name, value](GgufWriter& writer) {
      newer(writer);
      writer.Set("deepseek2.attention." + std::string(name), value);
    };
  };
  ExpectRefused(changed("key_length", 10), "attention.key_length is 10");
  ExpectRefused(changed("value_length", 5), "attention.value_length is 5");
  ExpectRefused(changed("key_length_mla", 4), "key_length_mla is 4");
}

TEST(DeepseekReaderTest, LinearScalingAndHalvesOfWeightsAreRead) {
  Written half;
  half.dtype = tensor::DType::kF16;
  const auto linear = [](GgufWriter& writer) {
    writer.Set("deepseek2.rope.scaling.type", "linear");
    writer.Set("deepseek2.rope.scaling.factor", 4.0f);
  };
  const auto model = Read(FileBytes(linear, half));
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model.value()->config().rope.factor, 4.0f);
}

TEST(DeepseekReaderTest, RefusesWhatItDoesNotCompute) {
  ExpectRefused(
      [](GgufWriter& writer) {
        writer.Set("deepseek2.expert_count", std::uint32_t{64});
        writer.Set("deepseek2.leading_dense_block_count", std::uint32_t{1});
      },
      "deepseek2.expert_count is 64 and deepseek2.leading_dense_block_count 1 of 2 layers; "
      "mixtures of experts are not supported");
  // Experts that no layer uses are none.
  EXPECT_TRUE(Read(FileBytes(Set("expert_count", std::uint32_t{64}))).has_value());
  ExpectRefused(
      [](GgufWriter& writer) {
        writer.Set("deepseek2.expert_shared_count", std::uint32_t{2});
        writer.Set("deepseek2.leading_dense_block_count", std::uint32_t{1});
      },
      "deepseek2.expert_shared_count is 2");
  ExpectRefused(Set("attention.sliding_window", std::uint32_t{9}), "attention.sliding_window");
  ExpectRefused(Set("attention.indexer.top_k", std::uint32_t{9}), "attention.indexer.top_k");
  ExpectRefused(Set("vocab_size", std::uint32_t{30}), "deepseek2.vocab_size is 30");
  ExpectRefused(Set("nextn_predict_layers", std::uint32_t{1}), "nextn_predict_layers is 1");
  ExpectRefused(Set("rope.scaling.type", "yarn"), "yarn");
  ExpectRefused(Set("rope.scaling.yarn_log_multiplier", 0.07f), "yarn_log_multiplier");
  ExpectRefused(
      [](GgufWriter& writer) {
        writer.AddTensor("blk.0.attn_q.bias", {4}, tensor::DType::kF32, std::vector<std::byte>(16));
      },
      "blk.0.attn_q.bias");
}

TEST(DeepseekReaderTest, RefusesBadMetadata) {
  for (const char* key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length",
        "attention.head_count", "attention.kv_lora_rank", "attention.value_length"}) {
    ExpectRefused(Set(key, std::uint32_t{0}), "deepseek2." + std::string(key));
    ExpectRefused(Set(key, std::numeric_limits<std::uint64_t>::max()),
                  "deepseek2." + std::string(key));
    ExpectRefused(Set(key, "7"), "deepseek2." + std::string(key));
  }
  ExpectRefused(Set("attention.head_count_kv", std::uint32_t{2}), "head_count_kv is 2");
  ExpectRefused(Set("attention.key_length", std::uint32_t{4}), "key_length is 4");
  ExpectRefused(Set("attention.key_length", std::uint64_t{1} << 63), "attention.key_length");
  ExpectRefused(Set("attention.q_lora_rank", std::uint64_t{1} << 63), "attention.q_lora_rank");
  ExpectRefused(Set("attention.q_lora_rank", std::uint32_t{8}), "attn_q_a.weight");
  ExpectRefused(Set("attention.kv_lora_rank", std::uint32_t{513}), "1 to 512");
  ExpectRefused(Set("rope.dimension_count", std::uint32_t{3}), "rope.dimension_count is 3");
  ExpectRefused(Set("rope.dimension_count", std::uint32_t{66}), "rope.dimension_count");
  ExpectRefused(Set("rope.freq_base", 0.0f), "rope.freq_base");
  ExpectRefused(Set("block_count", std::uint32_t{3}), "blk.2.");
  for (const float eps : {0.0f, -1.0f, NAN, INFINITY}) {
    ExpectRefused(Set("attention.layer_norm_rms_epsilon", eps), "layer_norm_rms_epsilon");
  }
}

TEST(DeepseekReaderTest, RefusesBadTensors) {
  for (const TensorSpec& spec : DeepseekTensors(FileConfig())) {
    if (spec.name == "output.weight") continue;  // A tied head.
    ExpectRefused(Nothing, spec.name, {.tensors = FileConfig(), .dropped = spec.name});
    ExpectRefused(Nothing, spec.name, {.tensors = FileConfig(), .poisoned = spec.name});
  }
  // Shapes that do not fit the metadata.
  Written wide;
  wide.tensors.feed_forward = 21;
  ExpectRefused(Set("feed_forward_length", std::uint32_t{20}), "[21, 16]", wide);
  const auto other_vocabulary = Read(FileBytes(Nothing), kVocab + 1);
  ASSERT_FALSE(other_vocabulary.has_value());
  EXPECT_NE(other_vocabulary.error().message.find("token_embd.weight"), std::string::npos);
}

// What the writer wrote, by way of a file and the dispatch by architecture.
TEST(DeepseekReaderTest, SavedModelsComeBack) {
  const std::string path = testing::TempDir() + "/deepseek_" + std::to_string(getpid()) + ".gguf";
  const tokenizer::VocabularySpec vocabulary = TestVocabulary();
  for (const tensor::DType dtype : {tensor::DType::kF32, tensor::DType::kBF16}) {
    DeepseekConfig config = FileConfig();
    config.vocab = vocabulary.pieces.size();
    config.query_rank = dtype == tensor::DType::kF32 ? 0 : 8;
    config.split_up = dtype == tensor::DType::kF32;
    config.rope.factor = 2;
    config.rope.divisors = {1, 3};
    ASSERT_TRUE(SaveDeepseek(base::Env::Default(), path, config, vocabulary, RandomSource(0.3f),
                             {"small", dtype})
                    .has_value());
    const auto loaded = LoadModel(base::Env::Default(), path);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    EXPECT_EQ(loaded.value().name, "small");
    const auto* model = dynamic_cast<const DeepseekModel*>(loaded.value().model.get());
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->config(), config);
  }
  std::filesystem::remove(path);
}

TEST(DeepseekReaderTest, EveryCutFileIsRefused) {
  const std::vector<std::byte> bytes = FileBytes(Nothing);
  for (std::size_t cut = 0; cut < bytes.size(); cut += cut < 2048 ? 3 : 499) {
    EXPECT_FALSE(Read(std::span(bytes).first(cut)).has_value()) << cut;
  }
  EXPECT_TRUE(Read(bytes).has_value());
}

}  // namespace
}  // namespace kvasir::model
