// One row's bits depend on its sequence's tokens and on nothing else.
#include "model/gpt2_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/hash.h"
#include "kernels/targets.h"
#include "kvcache/block_pool.h"
#include "model/model_test_util.h"

namespace kvasir::model {
namespace {

class Gpt2ModelTest : public testing::Test {
 protected:
  Gpt2ModelTest() : config_(TestConfig()) {
    model_ = Gpt2Model::Make(config_, RandomSource(0.3f)).value();
    UseBlocks(16, {});
  }
  void UseBlocks(std::uint64_t block_tokens, std::optional<std::uint64_t> placement) {
    pool_ =
        kvcache::BlockPool::Make(kvcache::CacheGeometry::Make({config_.layers, config_.heads,
                                                               config_.head_dim(), block_tokens})
                                     .value(),
                                 {.budget_bytes = 64 << 20, .placement_seed = placement})
            .value();
  }
  std::vector<TokenId> Tokens(std::size_t count, std::uint32_t stream) {
    std::vector<TokenId> tokens(count);
    for (std::size_t i = 0; i < count; ++i) {
      tokens[i] = base::Philox4x32(kTestSeed, {static_cast<std::uint32_t>(i), stream, 7, 0})[0] %
                  static_cast<std::uint32_t>(config_.vocab);
    }
    return tokens;
  }
  // All rows of one sequence, in chunks.
  std::vector<float> Rows(const std::vector<TokenId>& tokens, std::size_t chunk,
                          std::size_t threads = 1) {
    base::ThreadTeam team(threads);
    kvcache::CachedSequence sequence(*pool_);
    std::vector<float> all;
    for (std::size_t at = 0; at < tokens.size(); at += chunk) {
      const std::size_t count = std::min(chunk, tokens.size() - at);
      const BatchItem item{&sequence, std::span(tokens).subspan(at, count), count};
      std::vector<float> logits(count * config_.vocab);
      EXPECT_TRUE(model_->Forward(std::span(&item, 1), scratch_, team, logits).has_value());
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }
  static bool SameBits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
  }

  Gpt2Config config_;
  std::unique_ptr<Gpt2Model> model_;
  std::unique_ptr<kvcache::BlockPool> pool_;
  Scratch scratch_;
};

TEST_F(Gpt2ModelTest, ChunksThreadsBlocksPlacementAndTargetsGiveTheSameBits) {
  const auto tokens = Tokens(48, 1);
  const auto expected = Rows(tokens, 1);
  for (std::size_t chunk : {2u, 7u, 16u, 47u, 48u}) {
    EXPECT_TRUE(SameBits(expected, Rows(tokens, chunk))) << chunk;
  }
  for (std::size_t threads : {2u, 3u, 8u}) {
    EXPECT_TRUE(SameBits(expected, Rows(tokens, 19, threads))) << threads;
  }
  for (std::uint64_t block : {32u, 64u, 256u}) {
    UseBlocks(block, block);
    EXPECT_TRUE(SameBits(expected, Rows(tokens, 5))) << block;
  }
  for (const kernels::Target& target : kernels::AvailableTargets()) {
    kernels::ForceTarget(target);
    EXPECT_TRUE(SameBits(expected, Rows(tokens, 11))) << target.name;
  }
  kernels::UseBestTarget();
}

// Mixed prefill and decode, some rows wanted, in one batch: each row as alone.
TEST_F(Gpt2ModelTest, NeighboursChangeNothing) {
  base::ThreadTeam team(2);
  std::vector<std::vector<TokenId>> texts;
  std::vector<std::vector<float>> expected;
  std::vector<kvcache::CachedSequence> sequences;
  for (std::uint32_t i = 0; i < 5; ++i) {
    texts.push_back(Tokens(20 + 5 * i, 10 + i));
    expected.push_back(Rows(texts.back(), 1));
    sequences.emplace_back(*pool_);
  }
  const std::size_t counts[] = {1, 7, 3, 1, 4};  // Tokens a step.
  for (std::size_t step = 0; step < 5; ++step) {
    std::vector<BatchItem> items;
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      const std::size_t at = sequences[i].length();
      const std::size_t count = std::min(counts[(i + step) % 5], texts[i].size() - at);
      if (count == 0) continue;
      items.push_back(
          {&sequences[i], std::span(texts[i]).subspan(at, count), (i + step) % (count + 1)});
      wanted += items.back().logit_rows;
    }
    std::vector<std::size_t> ends;
    for (const BatchItem& item : items)
      ends.push_back(item.sequence->length() + item.tokens.size());
    std::vector<float> logits(wanted * config_.vocab);
    ASSERT_TRUE(model_->Forward(items, scratch_, team, logits).has_value());
    std::size_t row = 0;
    for (std::size_t n = 0; n < items.size(); ++n) {
      const auto i = static_cast<std::size_t>(items[n].sequence - sequences.data());
      for (std::size_t r = 0; r < items[n].logit_rows; ++r, ++row) {
        const std::size_t position = ends[n] - items[n].logit_rows + r;
        EXPECT_TRUE(
            SameBits(std::span(logits).subspan(row * config_.vocab, config_.vocab),
                     std::span(expected[i]).subspan(position * config_.vocab, config_.vocab)))
            << "sequence " << i << " position " << position;
      }
    }
    EXPECT_EQ(row, wanted);
  }
}

TEST_F(Gpt2ModelTest, ErrorsLeaveSequencesAsTheyWere) {
  base::ThreadTeam team(1);
  kvcache::CachedSequence sequence(*pool_);
  const auto tokens = Tokens(49, 2);
  std::vector<float> logits(config_.vocab);
  const auto forward = [&](std::span<const TokenId> part) {
    const BatchItem item{&sequence, part, 1};
    return model_->Forward(std::span(&item, 1), scratch_, team, logits);
  };
  const auto too_long = forward(tokens);
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().message,
            "49 tokens after 0 do not fit the model's context of 48 tokens");
  ASSERT_TRUE(forward(std::span(tokens).first(47)).has_value());
  EXPECT_FALSE(forward(std::span(tokens).first(2)).has_value());
  EXPECT_EQ(sequence.length(), 47u);
  const TokenId outside = 267;
  const auto bad = forward(std::span(&outside, 1));
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().message.find("267"), std::string::npos);
  EXPECT_EQ(sequence.length(), 47u);
}

TEST_F(Gpt2ModelTest, RunningOutOfBlocksIsAnOrdinaryResult) {
  const auto geometry = pool_->geometry();
  auto small = kvcache::BlockPool::Make(geometry, {.budget_bytes = geometry.block_bytes()}).value();
  kvcache::CachedSequence sequence(*small);
  base::ThreadTeam team(1);
  const auto tokens = Tokens(17, 3);
  const BatchItem item{&sequence, tokens, 0};
  const auto result = model_->Forward(std::span(&item, 1), scratch_, team, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, base::ErrorCode::kExhausted);
  EXPECT_EQ(sequence.length(), 0u);
}

// The contract's version 1 in one number: any change of any bit of the forward pass shows here, on
// every target, and must be meant.
TEST_F(Gpt2ModelTest, GoldenLogitsHash) {
  for (const kernels::Target& target : kernels::AvailableTargets()) {
    kernels::ForceTarget(target);
    const auto rows = Rows(Tokens(48, 1), 48);
    EXPECT_EQ(base::HashSpan64(std::span<const float>(rows)), 14017651102477595663ull)
        << target.name;
  }
  kernels::UseBestTarget();
}

}  // namespace
}  // namespace kvasir::model
