#include "eval/model_summary.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "formats/gguf_writer.h"

namespace kvasir::eval {
namespace {

using formats::GgufWriter;

ModelSummary SummaryOf(const std::function<void(GgufWriter&)>& fill) {
  GgufWriter writer;
  fill(writer);
  const auto bytes = writer.Encode();
  EXPECT_TRUE(bytes) << bytes.error().message;
  if (!bytes) return {};
  const auto file = formats::GgufFile::Parse(bytes.value(), "test");
  EXPECT_TRUE(file) << file.error().message;
  return file ? Summarize(file.value()) : ModelSummary();
}

void SetLlama(GgufWriter& writer) {
  writer.Set("general.architecture", "llama");
  writer.Set("llama.block_count", std::uint32_t{3});
  writer.Set("llama.attention.head_count", std::uint32_t{8});
  writer.Set("llama.attention.head_count_kv", std::uint32_t{2});
  writer.Set("llama.embedding_length", std::uint32_t{64});
  writer.Set("llama.context_length", std::uint32_t{512});
  writer.AddTensor("a", {3, 5}, tensor::DType::kF16, std::vector<std::byte>(30));
  writer.AddTensor("b", {7}, tensor::DType::kF32, std::vector<std::byte>(28));
}

TEST(ModelSummaryTest, DescribesModelsOfOtherArchitectures) {
  const ModelSummary summary = SummaryOf(SetLlama);
  EXPECT_EQ(summary.architecture, "llama");
  EXPECT_EQ(summary.layers, 3u);
  EXPECT_EQ(summary.heads, 8u);
  EXPECT_EQ(summary.kv_heads, 2u);
  EXPECT_EQ(summary.embedding, 64u);
  EXPECT_EQ(summary.context, 512u);
  EXPECT_EQ(summary.vocab, std::nullopt);
  EXPECT_EQ(summary.parameters, 22u);
  EXPECT_EQ(summary.cache_bytes_per_token, 3u * 2 * 8 * 2 * 4);
  ASSERT_TRUE(summary.cache);
  EXPECT_EQ(summary.cache->layers, 3u);
  EXPECT_EQ(summary.cache->kv_heads, 2u);
  EXPECT_EQ(summary.cache->head_dim, 8u);
}

// Whatever the heads are: (512 + 64) values a layer.
TEST(ModelSummaryTest, ALatentCacheHasNoHeads) {
  const auto fill = [](GgufWriter& writer) {
    writer.Set("general.architecture", "deepseek2");
    writer.Set("deepseek2.block_count", std::uint32_t{27});
    writer.Set("deepseek2.attention.head_count", std::uint32_t{16});
    writer.Set("deepseek2.embedding_length", std::uint32_t{2048});
    writer.Set("deepseek2.attention.key_length", std::uint32_t{192});
    writer.Set("deepseek2.attention.kv_lora_rank", std::uint32_t{512});
  };
  EXPECT_FALSE(SummaryOf(fill).cache);  // How wide its key is, is not said.
  const ModelSummary summary = SummaryOf([&](GgufWriter& writer) {
    fill(writer);
    writer.Set("deepseek2.rope.dimension_count", std::uint32_t{64});
  });
  ASSERT_TRUE(summary.cache);
  EXPECT_EQ(summary.cache->latent_dim, 512u);
  EXPECT_EQ(summary.cache->rope_dim, 64u);
  EXPECT_EQ(summary.cache->kv_heads, 0u);
  EXPECT_EQ(summary.cache_bytes_per_token, 27u * 576 * 4);
}

TEST(ModelSummaryTest, KeyLengthAndVocabularyComeFromTheirKeys) {
  const ModelSummary summary = SummaryOf([](GgufWriter& writer) {
    SetLlama(writer);
    writer.Set("llama.attention.key_length", std::uint32_t{16});
    writer.Set("llama.vocab_size", std::uint32_t{99});
  });
  EXPECT_EQ(summary.vocab, 99u);
  EXPECT_EQ(summary.cache_bytes_per_token, 3u * 2 * 16 * 2 * 4);
  const ModelSummary listed = SummaryOf([](GgufWriter& writer) {
    SetLlama(writer);
    writer.Set("llama.vocab_size", std::uint32_t{99});
    writer.Set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  });
  EXPECT_EQ(listed.vocab, 2u);
}

TEST(ModelSummaryTest, FilesThatHoldNoModelAreDescribedToo) {
  const ModelSummary empty = SummaryOf([](GgufWriter&) {});
  EXPECT_EQ(empty.architecture, std::nullopt);
  EXPECT_EQ(empty.parameters, 0u);
  EXPECT_EQ(empty.cache_bytes_per_token, std::nullopt);
}

TEST(ModelSummaryTest, OddValuesAreLeftOut) {
  const ModelSummary summary = SummaryOf([](GgufWriter& writer) {
    SetLlama(writer);
    writer.Set("llama.block_count", "three");
    writer.Set("llama.attention.head_count_kv", -1);
  });
  EXPECT_EQ(summary.layers, std::nullopt);
  EXPECT_EQ(summary.kv_heads, std::nullopt);
  EXPECT_EQ(summary.cache_bytes_per_token, std::nullopt);
  for (const std::uint32_t heads : {0u, 7u, 1u << 31}) {
    const ModelSummary odd = SummaryOf([&](GgufWriter& writer) {
      SetLlama(writer);
      writer.Set("llama.attention.head_count", heads);
    });
    EXPECT_EQ(odd.cache_bytes_per_token, std::nullopt) << heads;
  }
}

}  // namespace
}  // namespace kvasir::eval
