// One row's bits depend on its sequence's tokens and on nothing else; and a token's part of the
// cache is one latent and one key a layer.
#include "model/deepseek_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/hash.h"
#include "kernels/targets.h"
#include "kvcache/block_pool.h"
#include "model/model_test_util.h"

namespace kvasir::model {
namespace {

// No width is a multiple of 16 or of another.
DeepseekConfig TestDeepseek(std::uint64_t query_rank) {
  DeepseekConfig config;
  config.layers = 2;
  config.heads = 3;
  config.embedding = 24;
  config.feed_forward = 40;
  config.context = 150;
  config.vocab = 67;
  config.query_rank = query_rank;
  config.latent_dim = 21;
  config.nope_dim = 10;
  config.value_dim = 9;
  config.rope.dimensions = 6;
  return config;
}

// Query rank; heads.
class DeepseekModelTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  DeepseekModelTest() : config_(TestDeepseek(GetParam())) {
    model_ = DeepseekModel::Make(config_, RandomSource(0.3f)).value();
    UseBlocks(16, {});
  }
  void UseBlocks(std::uint64_t block_tokens, std::optional<std::uint64_t> placement) {
    pool_ = kvcache::BlockPool::Make(
                kvcache::CacheGeometry::Make(model_->shape().Cache(block_tokens)).value(),
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
  // Logits of the tokens after what the sequence holds, in chunks.
  std::vector<float> Continue(kvcache::CachedSequence& sequence, std::span<const TokenId> tokens,
                              std::size_t chunk, std::size_t threads = 1) {
    base::ThreadTeam team(threads);
    std::vector<float> all;
    for (std::size_t at = 0; at < tokens.size(); at += chunk) {
      const std::size_t count = std::min(chunk, tokens.size() - at);
      const BatchItem item{&sequence, tokens.subspan(at, count), count};
      std::vector<float> logits(count * config_.vocab);
      EXPECT_TRUE(model_->Forward(std::span(&item, 1), scratch_, team, logits).has_value());
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }
  std::vector<float> Rows(const std::vector<TokenId>& tokens, std::size_t chunk,
                          std::size_t threads = 1) {
    kvcache::CachedSequence sequence(*pool_);
    return Continue(sequence, tokens, chunk, threads);
  }
  std::span<const float> RowsFrom(const std::vector<float>& rows, std::size_t position) const {
    return std::span(rows).subspan(position * config_.vocab);
  }
  static bool SameBits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
  }

  DeepseekConfig config_;
  std::unique_ptr<DeepseekModel> model_;
  std::unique_ptr<kvcache::BlockPool> pool_;
  Scratch scratch_;
};
INSTANTIATE_TEST_SUITE_P(QueryRanks, DeepseekModelTest, testing::Values(0, 13));

TEST_P(DeepseekModelTest, ChunksThreadsBlocksPlacementAndTargetsGiveTheSameBits) {
  const auto tokens = Tokens(150, 1);
  const auto expected = Rows(tokens, 1);
  for (std::size_t chunk : {2u, 7u, 64u, 149u, 150u}) {
    EXPECT_TRUE(SameBits(expected, Rows(tokens, chunk))) << chunk;
  }
  for (std::size_t threads : {2u, 3u, 8u}) {
    EXPECT_TRUE(SameBits(expected, Rows(tokens, 19, threads))) << threads;
  }
  for (std::uint64_t block : {32u, 64u, 256u}) {
    UseBlocks(block, block);
    EXPECT_TRUE(SameBits(expected, Rows(tokens, 37))) << block;
  }
  for (const kernels::Target& target : kernels::AvailableTargets()) {
    kernels::ForceTarget(target);
    EXPECT_TRUE(SameBits(expected, Rows(tokens, 41))) << target.name;
  }
  kernels::UseBestTarget();
}

// Mixed prefill and decode, some rows wanted, in one batch: each row as alone.
TEST_P(DeepseekModelTest, NeighboursChangeNothing) {
  base::ThreadTeam team(2);
  std::vector<std::vector<TokenId>> texts;
  std::vector<std::vector<float>> expected;
  std::vector<kvcache::CachedSequence> sequences;
  for (std::uint32_t i = 0; i < 5; ++i) {
    texts.push_back(Tokens(20 + 15 * i, 10 + i));
    expected.push_back(Rows(texts.back(), 1));
    sequences.emplace_back(*pool_);
  }
  const std::size_t counts[] = {1, 17, 3, 1, 4};  // Tokens a step.
  for (std::size_t step = 0; step < 6; ++step) {
    std::vector<BatchItem> items;
    std::vector<std::span<const float>> rows;  // Expected, in order.
    for (std::size_t i = 0; i < 5; ++i) {
      const std::size_t at = sequences[i].length();
      const std::size_t count = std::min(counts[(i + step) % 5], texts[i].size() - at);
      if (count == 0) continue;
      const std::size_t wanted = (i + step) % (count + 1);
      items.push_back({&sequences[i], std::span(texts[i]).subspan(at, count), wanted});
      for (std::size_t r = at + count - wanted; r < at + count; ++r) {
        rows.push_back(RowsFrom(expected[i], r).first(config_.vocab));
      }
    }
    std::vector<float> logits(rows.size() * config_.vocab);
    ASSERT_TRUE(model_->Forward(items, scratch_, team, logits).has_value());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      EXPECT_TRUE(SameBits(RowsFrom(logits, row).first(config_.vocab), rows[row]))
          << "step " << step << " row " << row;
    }
  }
}

TEST_P(DeepseekModelTest, ForkCopyOnWriteAndTruncateGiveTheSameBits) {
  const auto tokens = Tokens(100, 3);
  const auto expected = Rows(tokens, 1);
  auto other = tokens;  // The same up to position 40, where it lies inside a block.
  const auto tail = Tokens(100, 4);
  std::copy(tail.begin() + 41, tail.end(), other.begin() + 41);
  const auto other_expected = Rows(other, 1);
  for (const std::uint64_t block : {16u, 64u}) {
    UseBlocks(block, 5);
    kvcache::CachedSequence trunk(*pool_);
    Continue(trunk, std::span(tokens).first(41), 9);
    kvcache::CachedSequence branch = trunk.Fork();
    const std::span<const TokenId> rest = std::span(tokens).subspan(41);
    EXPECT_TRUE(
        SameBits(Continue(branch, std::span(other).subspan(41), 10), RowsFrom(other_expected, 41)));
    EXPECT_TRUE(SameBits(Continue(trunk, rest, 20), RowsFrom(expected, 41)));
    branch.Truncate(41);  // And overwritten with the trunk's text.
    EXPECT_TRUE(SameBits(Continue(branch, rest, 1), RowsFrom(expected, 41)));
  }
}

// (latent_dim + rope dimensions) · layers · 4 bytes, and not one more.
TEST_P(DeepseekModelTest, TheCacheHoldsOneEntryALayer) {
  EXPECT_EQ(pool_->geometry().bytes_per_token(), (21u + 6u) * 2u * 4u);
  kvcache::CachedSequence sequence(*pool_);
  Continue(sequence, Tokens(48, 1), 48);
  EXPECT_EQ(sequence.held_bytes(), 48u * (21u + 6u) * 2u * 4u);
  EXPECT_EQ(model_->shape().kv_heads, 0u);
  EXPECT_EQ(model_->shape().latent_dim, 21u);
  EXPECT_EQ(model_->shape().rope_dim, 6u);
}

TEST_P(DeepseekModelTest, ErrorsLeaveSequencesAsTheyWere) {
  base::ThreadTeam team(1);
  kvcache::CachedSequence sequence(*pool_);
  const auto tokens = Tokens(151, 2);
  std::vector<float> logits(config_.vocab);
  const auto forward = [&](std::span<const TokenId> part) {
    const BatchItem item{&sequence, part, 1};
    return model_->Forward(std::span(&item, 1), scratch_, team, logits);
  };
  const auto too_long = forward(tokens);
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().message,
            "151 tokens after 0 do not fit the model's context of 150 tokens");
  ASSERT_TRUE(forward(std::span(tokens).first(149)).has_value());
  EXPECT_FALSE(forward(std::span(tokens).first(2)).has_value());
  EXPECT_EQ(sequence.length(), 149u);
  const TokenId outside = 67;
  const auto bad = forward(std::span(&outside, 1));
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().message.find("67"), std::string::npos);
  EXPECT_EQ(sequence.length(), 149u);
}

TEST_P(DeepseekModelTest, RunningOutOfBlocksIsAnOrdinaryResult) {
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

// attn_k_b and attn_v_b say what attn_kv_b says, and give the same bits.
TEST_P(DeepseekModelTest, SplitUpProjectionsAreTheSameModel) {
  const DeepseekConfig& c = config_;
  const TensorSource joint = RandomSource(0.3f);
  std::vector<float> part;
  const TensorSource split = [&](const TensorSpec& spec) -> base::Result<std::span<const float>> {
    const bool is_k = spec.name.ends_with("attn_k_b.weight");
    if (!is_k && !spec.name.ends_with("attn_v_b.weight")) return joint(spec);
    const std::string name = spec.name.substr(0, spec.name.find("attn_")) + "attn_kv_b.weight";
    const auto all = joint({name, {c.heads * (c.nope_dim + c.value_dim), c.latent_dim}}).value();
    part.clear();
    for (std::size_t h = 0; h < c.heads; ++h) {
      const float* up = all.data() + h * (c.nope_dim + c.value_dim) * c.latent_dim;
      if (is_k) {
        for (std::size_t d = 0; d < c.latent_dim; ++d) {
          for (std::size_t n = 0; n < c.nope_dim; ++n) part.push_back(up[n * c.latent_dim + d]);
        }
      } else {
        part.insert(part.end(), up + c.nope_dim * c.latent_dim,
                    up + (c.nope_dim + c.value_dim) * c.latent_dim);
      }
    }
    return std::span<const float>(part);
  };
  const auto tokens = Tokens(30, 1);
  const auto expected = Rows(tokens, 30);
  DeepseekConfig config = c;
  config.split_up = true;
  model_ = DeepseekModel::Make(config, split).value();
  EXPECT_TRUE(SameBits(expected, Rows(tokens, 30)));
}

TEST_P(DeepseekModelTest, ATiedHeadIsTheEmbedding) {
  const TensorSource source = RandomSource(0.3f);
  model_ = DeepseekModel::Make(config_, [&](const TensorSpec& spec) {
             TensorSpec asked = spec;
             if (spec.name == "output.weight") asked.name = "token_embd.weight";
             return source(asked);
           }).value();
  const auto tokens = Tokens(20, 1);
  const auto expected = Rows(tokens, 20);
  DeepseekConfig config = config_;
  config.tied_head = true;
  model_ = DeepseekModel::Make(config, source).value();
  EXPECT_TRUE(SameBits(expected, Rows(tokens, 20)));
}

// The contract's version 1 in one number: any change of any bit of the forward pass shows here, on
// every target, and must be meant.
TEST_P(DeepseekModelTest, GoldenLogitsHash) {
  const std::map<std::uint64_t, std::uint64_t> golden = {{0, 9131714164452446073ull},
                                                         {13, 16463826836464337159ull}};
  for (const kernels::Target& target : kernels::AvailableTargets()) {
    kernels::ForceTarget(target);
    const auto rows = Rows(Tokens(150, 1), 150);
    EXPECT_EQ(base::HashSpan64(std::span<const float>(rows)), golden.at(GetParam())) << target.name;
  }
  kernels::UseBestTarget();
}

}  // namespace
}  // namespace kvasir::model
