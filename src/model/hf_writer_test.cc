#include "model/hf_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "base/faulty_env.h"
#include "kvcache/block_pool.h"
#include "model/any_model_file.h"
#include "model/hf_folder.h"
#include "model/model_file.h"
#include "model/model_test_util.h"

namespace kvasir::model {
namespace {

using ::testing::HasSubstr;

class HfWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/hf_writer_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Save(const HfModelConfig& config, tensor::DType dtype,
            const tokenizer::VocabularySpec& vocabulary = TestVocabulary()) const {
    const SaveOptions options = {.name = "m", .dtype = dtype};
    const auto* gpt2 = std::get_if<Gpt2Config>(&config);
    const auto saved =
        gpt2 ? SaveGpt2(env_, Path("a.gguf"), *gpt2, vocabulary, RandomSource(0.3f), options)
             : SaveLlama(env_, Path("a.gguf"), std::get<LlamaConfig>(config), vocabulary,
                         RandomSource(0.3f), options);
    ASSERT_TRUE(saved.has_value()) << saved.error().message;
  }
  base::Result<void> Write(base::Env& env) const {
    return WriteHfFolder(env, formats::GgufFile::Open(env_, Path("a.gguf")).value(), Path("m"));
  }
  std::vector<float> Logits(const std::string& path) const {
    const auto loaded = LoadModel(env_, path);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
    const Model& model = *loaded.value().model;
    const auto geometry = kvcache::CacheGeometry::Make(model.shape().Cache(16)).value();
    const auto pool =
        kvcache::BlockPool::Make(geometry, {.budget_bytes = 4 * geometry.block_bytes()}).value();
    kvcache::CachedSequence sequence(*pool);
    const auto tokens = loaded.value().tokenizer->Encode("一三五七二 \n四").value();
    const BatchItem item{&sequence, tokens, tokens.size()};
    std::vector<float> logits(tokens.size() * model.shape().vocab);
    base::ThreadTeam team(1);
    Scratch scratch;
    EXPECT_TRUE(model.Forward(std::span(&item, 1), scratch, team, logits).has_value());
    return logits;
  }
  void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) const {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  }

  base::Env& env_ = base::Env::Default();
  std::string folder_;
};

TEST_F(HfWriterTest, AFolderHasTheFilesBits) {
  Gpt2Config tied = TestConfig();
  tied.tied_head = true;
  LlamaConfig qwen2 = TestLlamaConfig();
  qwen2.family = LlamaFamily::kQwen2;
  qwen2.qkv_bias = qwen2.tied_head = true;
  qwen2.windows = {0, 5};
  qwen2.rope.pairing = PairingOf(qwen2.family);
  LlamaConfig qwen3 = TestLlamaConfig();
  qwen3.family = LlamaFamily::kQwen3;
  qwen3.head_norms = true;
  qwen3.rope.pairing = PairingOf(qwen3.family);
  LlamaConfig scaled = TestLlamaConfig();
  scaled.rope.factor = 0.7f;
  scaled.norm_eps = 3e-6f;
  for (const HfModelConfig& config :
       {HfModelConfig(TestConfig()), HfModelConfig(tied), HfModelConfig(TestLlamaConfig()),
        HfModelConfig(scaled), HfModelConfig(qwen2), HfModelConfig(qwen3)}) {
    for (const tensor::DType dtype :
         {tensor::DType::kF32, tensor::DType::kF16, tensor::DType::kBF16}) {
      Save(config, dtype);
      const auto written = Write(env_);
      ASSERT_TRUE(written.has_value()) << written.error().message;
      ExpectSameBits(Logits(Path("a.gguf")), Logits(Path("m")));
      // And in GGUF again the very file, but for its name.
      const auto again = OpenAnyModelFile(env_, Path("m")).value();
      const auto first = formats::GgufFile::Open(env_, Path("a.gguf")).value();
      ASSERT_EQ(again.tensors().size(), first.tensors().size());
      EXPECT_EQ(again.bytes().size(), first.bytes().size());
      EXPECT_EQ(std::memcmp(again.bytes().data(), first.bytes().data(), first.bytes().size()), 0);
    }
  }
}

TEST_F(HfWriterTest, BlockTypesBecomeTheirNumbers) {
  Gpt2Config config = TestConfig();
  config.embedding = 64;
  Save(config, tensor::DType::kQ8_0);
  ASSERT_TRUE(Write(env_).has_value());
  const auto folder = OpenAnyModelFile(env_, Path("m")).value();
  EXPECT_EQ(folder.DTypeOf(*folder.Find("blk.0.attn_qkv.weight")).value(), tensor::DType::kF32);
}

TEST_F(HfWriterTest, UntrainedTokensAndTheirIdsAreKept) {
  tokenizer::VocabularySpec vocabulary = TestVocabulary();
  vocabulary.untrained = {260, 261};
  Save(TestConfig(), tensor::DType::kF32, vocabulary);
  ASSERT_TRUE(Write(env_).has_value());
  const auto loaded = LoadModel(env_, Path("m")).value();
  const tokenizer::VocabularySpec& read = loaded.tokenizer->vocabulary().spec();
  EXPECT_EQ(read.untrained, vocabulary.untrained);
  EXPECT_EQ(read.pieces, vocabulary.pieces);
  EXPECT_EQ(read.types, vocabulary.types);
  EXPECT_EQ(read.scores, vocabulary.scores);
  EXPECT_EQ(read.bos, vocabulary.bos);
  EXPECT_EQ(read.eos, vocabulary.eos);
  EXPECT_EQ(read.add_bos, vocabulary.add_bos);
}

TEST_F(HfWriterTest, WhatHasNoWordsIsRefused) {
  const auto refused = [&](const LlamaConfig& config, const std::string& why) {
    Save(config, tensor::DType::kF32);
    const auto written = Write(env_);
    ASSERT_FALSE(written.has_value()) << why;
    EXPECT_EQ(written.error().code, base::ErrorCode::kBadData);
    EXPECT_THAT(written.error().message, HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(Path("m")));
  };
  LlamaConfig config = TestLlamaConfig();
  config.windows = {0, 5};
  refused(config, "llama.attention.sliding_window");
  config = TestLlamaConfig();
  config.qkv_bias = true;
  refused(config, "biases");
  config = TestLlamaConfig();
  config.rope.dimensions = 8;
  refused(config, "llama.rope.dimension_count is 8");
  config = TestLlamaConfig();
  config.rope.divisors = {1, 2, 3, 4, 5.5f};
  refused(config, "rope_freqs.weight");
}

TEST_F(HfWriterTest, AFullDiskLeavesNoModelFolder) {
  Save(TestConfig(), tensor::DType::kF32);
  base::FaultyEnv faulty(env_);
  for (std::uint64_t operation = 0;; ++operation) {
    faulty.FailOperation(operation);
    if (Write(faulty)) break;
    EXPECT_FALSE(IsHfFolder(env_, Path("m"))) << operation;
    ASSERT_LT(operation, 100u);
  }
  EXPECT_TRUE(IsHfFolder(env_, Path("m")));
}

TEST_F(HfWriterTest, FilesCutAnywhereAreErrors) {
  Save(TestLlamaConfig(), tensor::DType::kF16);
  ASSERT_TRUE(Write(env_).has_value());
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const std::string whole(env_.Map(Path("m") + "/" + name).value()->text());
    for (std::size_t percent = 0; percent < 100; ++percent) {
      const std::string_view cut = std::string_view(whole).substr(0, whole.size() * percent / 100);
      ASSERT_TRUE(base::WriteFileAtomic(env_, Path("m") + "/" + name, cut).has_value());
      const auto opened = OpenAnyModelFile(env_, Path("m"));
      ASSERT_FALSE(opened.has_value()) << name << " " << percent;
      EXPECT_THAT(opened.error().message, HasSubstr(name));
      EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
    }
    ASSERT_TRUE(base::WriteFileAtomic(env_, Path("m") + "/" + name, std::string_view(whole)));
  }
  EXPECT_TRUE(OpenAnyModelFile(env_, Path("m")).has_value());
}

}  // namespace
}  // namespace kvasir::model
