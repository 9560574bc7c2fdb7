// Models of rounded weights: from a file and from a source, in memory, and of mixed types.
#include "model/rounded_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/gguf_writer.h"
#include "kvcache/block_pool.h"
#include "model/deepseek_model.h"
#include "model/model_file.h"
#include "model/model_test_util.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using tensor::DType;

// Widths of whole blocks, but for the value width and the last MLP's.
Gpt2Config WideGpt2(bool tied) {
  Gpt2Config config = TestConfig();
  config.embedding = 64;
  config.feed_forward = 96;
  config.tied_head = tied;
  return config;
}
LlamaConfig WideLlama() {
  LlamaConfig config = TestLlamaConfig();
  config.embedding = 64;
  config.head_dim = config.rope.dimensions = 16;
  config.feed_forward = 96;
  return config;
}
DeepseekConfig WideDeepseek(bool split_up) {
  DeepseekConfig config = TestDeepseekConfig(32);
  config.vocab = 267;
  config.embedding = 64;
  config.feed_forward = 96;
  config.latent_dim = 64;
  config.nope_dim = 32;
  config.split_up = split_up;
  return config;
}

std::vector<float> Logits(const Model& model) {
  const auto geometry = kvcache::CacheGeometry::Make(model.shape().Cache(16)).value();
  const auto pool = kvcache::BlockPool::Make(geometry, {.budget_bytes = 64 << 20}).value();
  kvcache::CachedSequence sequence(*pool);
  std::vector<TokenId> tokens;
  for (TokenId i = 0; i < 20; ++i) tokens.push_back(i * 37 % 267);
  std::vector<float> logits(tokens.size() * model.shape().vocab);
  const BatchItem item{&sequence, tokens, tokens.size()};
  Scratch scratch;
  base::ThreadTeam team(1);
  EXPECT_TRUE(model.Forward(std::span(&item, 1), scratch, team, logits).has_value());
  return logits;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

class RoundedModelTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/rounded_model_test_" + std::to_string(getpid()) + ".gguf";
  }
  void TearDown() override { std::remove(path_.c_str()); }
  std::unique_ptr<Model> Loaded() const {
    return std::move(LoadModel(base::Env::Default(), path_).value().model);
  }
  std::string path_;
};

TEST_F(RoundedModelTest, AFileIsItsSourceToTheBit) {
  base::Env& env = base::Env::Default();
  const auto vocabulary = TestVocabulary();
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    const TensorSource plain = RandomSource(0.3f), rounded = RoundedSource(plain, dtype);
    for (const bool flag : {false, true}) {
      const Gpt2Config gpt2 = WideGpt2(flag);
      ASSERT_TRUE(SaveGpt2(env, path_, gpt2, vocabulary, plain, {"", dtype}).has_value());
      EXPECT_TRUE(SameBits(Logits(*Loaded()), Logits(*Gpt2Model::Make(gpt2, rounded).value())));
      const DeepseekConfig deepseek = WideDeepseek(flag);
      if (!flag) continue;  // What is written is the split form.
      ASSERT_TRUE(SaveDeepseek(env, path_, deepseek, vocabulary, plain, {"", dtype}).has_value());
      EXPECT_TRUE(
          SameBits(Logits(*Loaded()), Logits(*DeepseekModel::Make(deepseek, rounded).value())));
    }
    const LlamaConfig llama = WideLlama();
    ASSERT_TRUE(SaveLlama(env, path_, llama, vocabulary, plain, {"", dtype}).has_value());
    EXPECT_TRUE(SameBits(Logits(*Loaded()), Logits(*LlamaModel::Make(llama, rounded).value())));
  }
}

// Rounded, and not far from what the numbers give in f32 under R1.
TEST_F(RoundedModelTest, AreNearTheSameNumbersInF32) {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    const TensorSource rounded = RoundedSource(RandomSource(0.1f), dtype);
    const TensorSource widened = [&](const TensorSpec& spec) { return rounded(spec); };
    const auto expect_near = [](const Model& model, const Model& wide) {
      EXPECT_TRUE(model.shape().rounded());
      EXPECT_FALSE(wide.shape().rounded());
      const std::vector<float> got = Logits(model), near = Logits(wide);
      EXPECT_FALSE(SameBits(got, near));  // R6 is another order of the sum.
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], near[i], 2e-5) << i;
    };
    for (const bool flag : {false, true}) {
      expect_near(*Gpt2Model::Make(WideGpt2(flag), rounded).value(),
                  *Gpt2Model::Make(WideGpt2(flag), widened).value());
      expect_near(*DeepseekModel::Make(WideDeepseek(flag), rounded).value(),
                  *DeepseekModel::Make(WideDeepseek(flag), widened).value());
    }
    expect_near(*LlamaModel::Make(WideLlama(), rounded).value(),
                *LlamaModel::Make(WideLlama(), widened).value());
  }
}

TEST_F(RoundedModelTest, GivesItsNumbersBack) {
  for (const bool tied : {false, true}) {
    const TensorSource rounded = RoundedSource(RandomSource(0.3f), DType::kQ4_0);
    const auto model = Gpt2Model::Make(WideGpt2(tied), rounded).value();
    for (const TensorSpec& spec : Gpt2Tensors(WideGpt2(tied))) {
      const auto values = rounded(spec).value();
      EXPECT_EQ(model->TensorValues(spec), std::vector<float>(values.begin(), values.end()))
          << spec.name;
    }
  }
}

// Matrices stay in their blocks: 8.5 and 4.5 bits a number, and what stays f32 in f32.
TEST_F(RoundedModelTest, SavesTheBytesOfItsBlocks) {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    const TensorSource rounded = RoundedSource(RandomSource(0.3f), dtype);
    const Gpt2Config config = WideGpt2(false);
    const auto model = Gpt2Model::Make(config, rounded).value();
    std::uint64_t bytes = 0;
    for (const TensorSpec& spec : Gpt2Tensors(config)) {
      const bool table = spec.name.find("_embd") != std::string::npos;
      const std::uint64_t numbers = table ? config.embedding : spec.shape.ElementCount().value();
      bytes += tensor::BytesOf(WrittenType(spec, dtype), numbers);
    }
    const StepWork& work = model->shape().work;
    EXPECT_EQ(work.weights * 4 - work.saved_weight_bytes, bytes);
  }
}

// Queries, keys and values share a matrix: of one type it is rounded, of several f32; and a matrix
// with rows that are no whole blocks is f32.
TEST_F(RoundedModelTest, MixedTypesAreWidened) {
  const TensorSource plain = RandomSource(0.3f);
  const TensorSource q8 = RoundedSource(plain, DType::kQ8_0);
  const TensorSource q4 = RoundedSource(plain, DType::kQ4_0);
  const auto is_value = [](const TensorSpec& spec) { return spec.name.ends_with("attn_v.weight"); };
  const LlamaConfig config = WideLlama();
  const std::uint64_t all = LlamaModel::Make(config, q8).value()->shape().work.saved_weight_bytes;
  for (const bool first_wide : {false, true}) {
    const TensorSource mixed(
        [&](const TensorSpec& spec) { return is_value(spec) ? q4(spec) : q8(spec); },
        [&](const TensorSpec& spec) -> base::Result<std::optional<TensorBlocks>> {
          if (first_wide && spec.name.ends_with("attn_q.weight")) {
            return std::optional<TensorBlocks>();
          }
          return is_value(spec) ? q4.BlocksOf(spec) : q8.BlocksOf(spec);
        });
    const auto model = LlamaModel::Make(config, mixed).value();
    const std::uint64_t shared = config.layers * config.qkv_width() * config.embedding;
    EXPECT_EQ(model->shape().work.saved_weight_bytes,
              all - shared * 4 + tensor::BytesOf(DType::kQ8_0, shared));
    for (const TensorSpec& spec : LlamaTensors(config)) {
      const auto values = is_value(spec) ? q4(spec).value() : q8(spec).value();
      EXPECT_EQ(model->TensorValues(spec), std::vector<float>(values.begin(), values.end()))
          << spec.name;
    }
  }
  // 24 is no whole block.
  EXPECT_FALSE(Gpt2Model::Make(TestConfig(), q8).value()->shape().rounded());
}

// Types that are only read: the model is that of their numbers in f32, to the bit.
TEST_F(RoundedModelTest, OtherBlockTypesAreReadAsF32) {
  LlamaConfig config = TestLlamaConfig();
  config.layers = 1;
  config.embedding = config.feed_forward = 256;
  config.heads = 8;
  config.kv_heads = 4;
  config.head_dim = config.rope.dimensions = 32;
  ASSERT_TRUE(SaveLlama(base::Env::Default(), path_, config, TestVocabulary(), RandomSource(0.1f),
                        {"", DType::kF32})
                  .has_value());
  for (const DType dtype : {DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ2_K, DType::kQ3_K,
                            DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    std::map<std::string, std::vector<float>> numbers;
    const auto file = formats::GgufFile::Open(base::Env::Default(), path_).value();
    formats::GgufWriter writer;
    for (const auto& entry : file.metadata().entries()) writer.Set(entry.key, entry.value);
    for (const auto& tensor : file.tensors()) {
      std::vector<float>& values = numbers[std::string(tensor.name)];
      values.resize(tensor.shape.ElementCount().value());
      if (tensor.shape.rank() == 1) {
        tensor::ConvertToF32(DType::kF32, tensor.data, values);
        writer.AddTensorView(tensor.name, tensor.shape, DType::kF32, tensor.data);
        continue;
      }
      std::vector<std::byte> blocks(tensor::BytesOf(dtype, values.size()));
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        // Every f16 among them is small: bits 6 to 4 of its high byte are 0.
        const auto w = base::Philox4x32(kTestSeed, {static_cast<std::uint32_t>(i), 5, 0, 0});
        blocks[i] = static_cast<std::byte>(w[0] & 0x8Fu);
      }
      tensor::ConvertToF32(dtype, blocks, values);
      writer.AddTensor(tensor.name, tensor.shape, dtype, std::move(blocks));
    }
    const std::string other = path_ + ".blocks";
    ASSERT_TRUE(writer.Write(base::Env::Default(), other).has_value());
    const auto loaded = LoadModel(base::Env::Default(), other).value();
    std::remove(other.c_str());
    const TensorSource source = [&](const TensorSpec& spec) {
      return base::Result<std::span<const float>>(std::span<const float>(numbers[spec.name]));
    };
    EXPECT_FALSE(loaded.model->shape().rounded());
    EXPECT_TRUE(SameBits(Logits(*loaded.model), Logits(*LlamaModel::Make(config, source).value())))
        << DTypeName(dtype);
  }
}

TEST_F(RoundedModelTest, ScalesThatAreNotFiniteAreRefused) {
  const Gpt2Config config = WideGpt2(true);
  formats::GgufWriter writer;
  ASSERT_TRUE(SaveGpt2(base::Env::Default(), path_, config, TestVocabulary(), RandomSource(0.3f),
                       {"", DType::kQ8_0})
                  .has_value());
  const auto file = formats::GgufFile::Open(base::Env::Default(), path_).value();
  std::vector<std::byte> poisoned;
  for (const auto& entry : file.metadata().entries()) writer.Set(entry.key, entry.value);
  for (const auto& tensor : file.tensors()) {
    const DType dtype = file.DTypeOf(tensor).value();
    if (tensor.name == "blk.1.ffn_up.weight") {
      poisoned.assign(tensor.data.begin(), tensor.data.end());
      poisoned[5 * 34 + 1] |= std::byte{0x7C};
      writer.AddTensorView(tensor.name, tensor.shape, dtype, poisoned);
    } else {
      writer.AddTensorView(tensor.name, tensor.shape, dtype, tensor.data);
    }
  }
  const std::string other = path_ + ".poisoned";
  ASSERT_TRUE(writer.Write(base::Env::Default(), other).has_value());
  const auto loaded = LoadModel(base::Env::Default(), other);
  std::remove(other.c_str());
  ASSERT_FALSE(loaded.has_value());
  EXPECT_NE(loaded.error().message.find("'blk.1.ffn_up.weight' holds a number that is not finite"),
            std::string::npos)
      << loaded.error().message;
}

}  // namespace
}  // namespace kvasir::model
