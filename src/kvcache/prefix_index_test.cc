#include "kvcache/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "kvcache/sequence.h"

namespace kvasir::kvcache {
namespace {

constexpr std::size_t kBlock = 16;
constexpr std::uint64_t kBlockBytes = 16 * 2 * 4;  // Of a cache of one layer, head and channel.

base::Hash128 SameForAll(const base::Hash128&, std::span<const TokenId>) { return {42, 42}; }

// `count` tokens: those of a text named by its number.
std::vector<TokenId> Text(TokenId number, std::size_t count) {
  std::vector<TokenId> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = number * 1000 + static_cast<TokenId>(i);
  return tokens;
}

std::vector<TokenId> Joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class PrefixIndexTest : public testing::Test {
 protected:
  PrefixIndexTest() { Start(100, {}); }
  ~PrefixIndexTest() override { Check(); }

  void Start(std::uint64_t blocks, const PrefixIndexOptions& options) {
    index_.reset();
    const CacheGeometry shape =
        CacheGeometry::Make({.layers = 1, .kv_heads = 1, .head_dim = 1}).value();
    pool_ = BlockPool::Make(shape, {.budget_bytes = blocks * shape.block_bytes()}).value();
    index_ = std::make_unique<PrefixIndex>(*pool_, options);
  }

  // A sequence of these tokens whose complete blocks are indexed. Twins are replaced.
  CachedSequence Hold(const std::vector<TokenId>& tokens, std::uint64_t salt = 0) {
    CachedSequence sequence(*pool_);
    EXPECT_TRUE(sequence.Reserve(tokens.size()));
    sequence.Advance(tokens.size());
    std::optional<PrefixNodeId> node;
    for (std::size_t i = 0; (i + 1) * kBlock <= tokens.size(); ++i) {
      const std::optional<BlockId> block = sequence.blocks()[i];
      node = index_->Insert(salt, node, std::span(tokens).subspan(i * kBlock, kBlock), {&block, 1});
      if (!node) break;
      if (index_->block(*node) != block) {
        sequence.ReplaceBlock(CacheGroupId(0), i, index_->block(*node).value());
      }
    }
    return sequence;
  }
  void Leave(const std::vector<TokenId>& tokens, std::uint64_t salt = 0) { Hold(tokens, salt); }

  std::size_t Found(const std::vector<TokenId>& tokens, std::uint64_t salt = 0) {
    const PrefixMatch match = index_->Find(salt, tokens);
    EXPECT_EQ(match.blocks[0].size(), (match.length + kBlock - 1) / kBlock);
    EXPECT_EQ(match.nodes.size(), match.blocks[0].size());
    return match.length;
  }

  void Check() const {
    pool_->CheckInvariants();
    index_->CheckInvariants();
  }

  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixIndex> index_;
};

TEST_F(PrefixIndexTest, AnEmptyIndexFindsNothing) {
  EXPECT_EQ(Found({}), 0u);
  EXPECT_EQ(Found(Text(1, 100)), 0u);
  EXPECT_EQ(index_->stats().nodes, 0u);
}

TEST_F(PrefixIndexTest, FindsTheLongestPrefixToTheToken) {
  Leave(Text(1, 50));  // 3 blocks, and 2 tokens that are in no complete block.
  EXPECT_EQ(index_->stats().nodes, 3u);
  for (std::size_t length = 0; length <= 60; ++length) {
    EXPECT_EQ(Found(Text(1, length)), std::min<std::size_t>(length, 48)) << length;
    const std::vector<TokenId> other = Joined(Text(1, length), Text(2, 40));
    EXPECT_EQ(Found(other), std::min<std::size_t>(length, 48)) << length;
  }
  EXPECT_EQ(Found(Text(2, 50)), 0u);
}

TEST_F(PrefixIndexTest, BlocksAreThoseOfTheSequence) {
  const CachedSequence held = Hold(Text(1, 40));
  const PrefixMatch match = index_->Find(0, Text(1, 24));
  EXPECT_EQ(match.length, 24u);
  ASSERT_EQ(match.blocks.size(), 1u);
  ASSERT_EQ(match.blocks[0].size(), 2u);
  EXPECT_EQ(match.blocks[0][0], held.blocks()[0]);
  EXPECT_EQ(match.blocks[0][1], held.blocks()[1]);
  const PrefixNodeId node = index_->NodeOf(held.blocks()[0]).value();
  EXPECT_EQ(match.nodes[0], node);
  EXPECT_EQ(index_->block(node), held.blocks()[0]);
  EXPECT_TRUE(std::ranges::equal(index_->tokens(node), Text(1, 16)));
  EXPECT_FALSE(index_->NodeOf(held.blocks()[2]));
  EXPECT_FALSE(index_->NodeOf(BlockId(99)));
}

TEST_F(PrefixIndexTest, AmongSiblingsTheOneThatBeginsMostAlike) {
  const std::vector<TokenId> stem = Text(1, 16);
  const auto child = [&](std::size_t same, TokenId then) {
    return Joined(Joined(stem, Text(5, same)), std::vector<TokenId>(kBlock - same, then));
  };
  for (const std::size_t same : {0u, 3u, 9u, 15u}) {
    Leave(child(same, 1));
    Leave(child(same, 900'000));
  }
  EXPECT_EQ(index_->stats().nodes, 9u);
  for (std::size_t same = 0; same < kBlock; ++same) {
    EXPECT_EQ(Found(child(same, 7)), 16 + same) << same;
    EXPECT_EQ(Found(child(same, 500'000)), 16 + same) << same;
  }
}

// Against every stored text, compared token by token.
TEST_F(PrefixIndexTest, ManyRandomPrefixes) {
  Start(100'000, {});
  std::mt19937 random(3);
  std::vector<std::vector<TokenId>> texts;
  const auto random_text = [&] {
    std::vector<TokenId> tokens(random() % 80);
    if (!texts.empty() && random() % 4 != 0) {  // Mostly a change of an earlier one.
      const std::vector<TokenId>& other = texts[random() % texts.size()];
      tokens.resize(std::max(tokens.size(), other.size()));
      std::ranges::copy(other, tokens.begin());
      for (std::size_t i = random() % (tokens.size() + 1); i < tokens.size(); ++i) {
        tokens[i] = random() % 3;
      }
    }
    return tokens;
  };
  std::vector<CachedSequence> held;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<TokenId> text = random_text();
    std::size_t expected = 0;
    for (const std::vector<TokenId>& other : texts) {
      const std::size_t most = std::min(text.size(), other.size() / kBlock * kBlock);
      std::size_t same = 0;
      while (same < most && text[same] == other[same]) ++same;
      expected = std::max(expected, same);
    }
    ASSERT_EQ(Found(text), expected) << i;
    texts.push_back(text);
    CachedSequence sequence = Hold(text);
    if (random() % 2 == 0) held.push_back(std::move(sequence));
  }
  Check();
  EXPECT_GT(index_->stats().nodes, 1000u);
  EXPECT_EQ(index_->stats().evicted, 0u);
}

TEST_F(PrefixIndexTest, TenantsDoNotSeeEachOther) {
  Leave(Text(1, 32), 10);
  EXPECT_EQ(Found(Text(1, 32), 10), 32u);
  EXPECT_EQ(Found(Text(1, 32), 11), 0u);
  EXPECT_EQ(Found(Text(1, 32), 0), 0u);
  Leave(Text(1, 32), 11);
  EXPECT_EQ(index_->stats().nodes, 4u);
}

TEST_F(PrefixIndexTest, TheFingerprintChangesEveryName) {
  const base::Hash128 name = index_->HashOf(3, std::nullopt, Text(1, 16));
  EXPECT_EQ(name, ChainHash(RootHash({}, 3), Text(1, 16)));
  Start(10, {.fingerprint = {1, 2}});
  EXPECT_EQ(index_->HashOf(3, std::nullopt, Text(1, 16)),
            ChainHash(RootHash({1, 2}, 3), Text(1, 16)));
}

TEST_F(PrefixIndexTest, ACollisionCannotLie) {
  Start(100, {.hash = SameForAll});
  const CachedSequence first = Hold(Text(1, 40));  // Its second block collides with its first.
  EXPECT_EQ(index_->stats().nodes, 1u);
  EXPECT_EQ(index_->stats().collisions, 1u);
  EXPECT_EQ(Found(Text(1, 40)), 16u);
  EXPECT_EQ(Found(Text(2, 40)), 0u);
  EXPECT_EQ(Found(Text(1, 40), /*salt=*/5), 0u);
  EXPECT_EQ(Found(Joined(Text(1, 5), Text(2, 40))), 5u);
  const CachedSequence second = Hold(Text(2, 40));
  EXPECT_EQ(index_->stats().nodes, 1u);
  EXPECT_EQ(Found(Text(2, 40)), 0u);
  EXPECT_GT(index_->stats().collisions, 4u);
  const std::optional<BlockId> block = second.blocks()[0];
  EXPECT_EQ(index_->Insert(0, std::nullopt, Text(1, 16), {&block, 1}),
            index_->NodeOf(first.blocks()[0]));
}

TEST_F(PrefixIndexTest, EqualBlocksBecomeOne) {
  const CachedSequence a = Hold(Joined(Text(1, 32), Text(2, 16)));
  const CachedSequence b = Hold(Joined(Text(1, 32), Text(3, 20)));
  EXPECT_EQ(a.blocks()[0], b.blocks()[0]);
  EXPECT_EQ(a.blocks()[1], b.blocks()[1]);
  EXPECT_NE(a.blocks()[2], b.blocks()[2]);
  EXPECT_EQ(index_->stats().nodes, 4u);
  EXPECT_EQ(pool_->stats().live_blocks, 5u);
  EXPECT_EQ(pool_->stats().shared_blocks, 2u);
}

TEST_F(PrefixIndexTest, FreedBlocksStayFindableUntilReused) {
  Start(4, {});
  Leave(Text(1, 64));
  EXPECT_EQ(pool_->stats().live_blocks, 0u);
  EXPECT_EQ(pool_->stats().idle_blocks, 4u);
  EXPECT_EQ(Found(Text(1, 64)), 64u);
  // Each block that is needed costs the last one of the path.
  std::vector<CachedSequence> others;
  for (std::size_t taken = 1; taken <= 4; ++taken) {
    others.push_back(Hold(Text(9, 5)));
    EXPECT_EQ(Found(Text(1, 64)), 64 - 16 * taken);
    Check();
  }
  EXPECT_EQ(index_->stats().evicted, 4u);
  CachedSequence refused(*pool_);
  EXPECT_EQ(refused.Reserve(1).error().code, base::ErrorCode::kExhausted);
}

TEST_F(PrefixIndexTest, TheLeastRecentlyUsedLeafGoesFirst) {
  Start(8, {});
  Leave(Joined(Text(1, 16), Text(2, 16)));  // Path A: 1, 2.
  Leave(Joined(Text(1, 16), Text(3, 16)));  // Path B: 1, 3.
  Leave(Text(4, 32));                       // Path C: two blocks.
  {
    CachedSequence again(*pool_);  // A is used once more.
    const PrefixMatch match = index_->Find(0, Joined(Text(1, 16), Text(2, 16)));
    again.Share(match.blocks, match.length);
    EXPECT_EQ(pool_->stats().idle_blocks, 3u);
    Check();
  }
  EXPECT_EQ(pool_->stats().idle_blocks, 5u);
  std::vector<CachedSequence> others;
  others.push_back(Hold(Text(8, 40)));  // The three blocks that were never made.
  EXPECT_EQ(index_->stats().evicted, 0u);
  const auto evict_one = [&] { others.push_back(Hold(Text(9, 3))); };
  const auto lengths = [&] {
    return std::vector<std::size_t>{Found(Joined(Text(1, 16), Text(2, 16))),
                                    Found(Joined(Text(1, 16), Text(3, 16))), Found(Text(4, 32))};
  };
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{32, 32, 32}));
  evict_one();
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{32, 16, 32}));
  evict_one();
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{32, 16, 16}));
  evict_one();
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{32, 16, 0}));
  evict_one();
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{16, 16, 0}));
  evict_one();
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{0, 0, 0}));
  Check();
}

TEST_F(PrefixIndexTest, LiveBlocksAreNeverEvicted) {
  Start(3, {});
  CachedSequence held = Hold(Text(1, 32));
  Leave(Text(2, 16));
  const CachedSequence other = Hold(Text(3, 4));
  EXPECT_EQ(Found(Text(2, 16)), 0u);
  EXPECT_EQ(Found(Text(1, 32)), 32u);
  CachedSequence more(*pool_);
  EXPECT_FALSE(more.Reserve(1));
  EXPECT_EQ(Found(Text(1, 32)), 32u);
}

TEST_F(PrefixIndexTest, AWriterWithoutRoomMakesTheIndexForget) {
  Start(4, {});
  CachedSequence writer = Hold(Text(1, 64));
  writer.Truncate(24);
  EXPECT_EQ(pool_->stats().idle_blocks, 2u);
  const CachedSequence other = Hold(Text(2, 20));  // Takes the two idle blocks.
  EXPECT_EQ(Found(Text(1, 64)), 32u);
  ASSERT_TRUE(writer.Reserve(8));
  EXPECT_EQ(Found(Text(1, 64)), 16u);
  EXPECT_TRUE(pool_->IsWritable(writer.blocks()[1]));
  Check();
}

TEST_F(PrefixIndexTest, ForgettingABlockForgetsWhatFollowsIt) {
  CachedSequence writer = Hold(Text(1, 16));
  Leave(Joined(Text(1, 16), Text(2, 32)));
  Leave(Joined(Text(1, 16), Text(3, 16)));
  EXPECT_EQ(index_->stats().nodes, 4u);
  pool_->MakeWritable(writer.blocks()[0]);
  EXPECT_EQ(index_->stats().nodes, 0u);
  EXPECT_EQ(pool_->stats().idle_blocks, 0u);
  EXPECT_EQ(Found(Joined(Text(1, 16), Text(2, 32))), 0u);
}

TEST_F(PrefixIndexTest, IdleBlocksCanBeLimited) {
  Start(100, {.max_idle_bytes = 3 * kBlockBytes});
  Leave(Text(1, 64));
  EXPECT_EQ(pool_->stats().idle_blocks, 3u);
  EXPECT_EQ(Found(Text(1, 64)), 48u);
  Leave(Text(2, 16));
  EXPECT_EQ(Found(Text(1, 64)), 32u);
  EXPECT_EQ(Found(Text(2, 16)), 16u);
  EXPECT_EQ(index_->stats().evicted, 2u);
  Start(100, {.max_idle_bytes = 0});
  Leave(Text(1, 64));
  EXPECT_EQ(pool_->stats().idle_blocks, 0u);
  EXPECT_EQ(index_->stats().nodes, 0u);
}

TEST_F(PrefixIndexTest, IdleBlocksCanBeEvictedAtOnce) {
  Leave(Text(1, 64));
  const CachedSequence held = Hold(Text(2, 32));
  index_->EvictIdle();
  EXPECT_EQ(pool_->stats().idle_blocks, 0u);
  EXPECT_EQ(Found(Text(1, 64)), 0u);
  EXPECT_EQ(Found(Text(2, 32)), 32u);
}

TEST_F(PrefixIndexTest, LogProbabilitiesLiveWithTheirBlock) {
  CachedSequence held = Hold(Text(1, 32));
  const PrefixNodeId node = index_->NodeOf(held.blocks()[1]).value();
  EXPECT_EQ(index_->LogProbs(node, 4), nullptr);
  index_->KeepLogProbs(node, 4, {.logprob = -1.5, .best = {{.id = 7, .logprob = -0.5}}});
  ASSERT_NE(index_->LogProbs(node, 4), nullptr);
  EXPECT_EQ(index_->LogProbs(node, 4)->logprob, -1.5);
  EXPECT_EQ(index_->LogProbs(node, 4)->best.front().id, 7u);
  EXPECT_EQ(index_->LogProbs(node, 5), nullptr);
  const std::uint64_t bytes = index_->stats().log_prob_bytes;
  EXPECT_GT(bytes, 0u);
  index_->KeepLogProbs(node, 4, {.logprob = -2});  // Replaced.
  EXPECT_LT(index_->stats().log_prob_bytes, bytes);
  Check();
  held.Reset();
  EXPECT_EQ(index_->LogProbs(node, 4)->logprob, -2);  // Idle, and still known.
  index_->EvictIdle();
  EXPECT_EQ(index_->stats().log_prob_bytes, 0u);
}

TEST_F(PrefixIndexTest, ThePoolOutlivesTheIndex) {
  const CachedSequence held = Hold(Text(1, 32));
  Leave(Text(2, 32));
  index_.reset();
  EXPECT_EQ(pool_->stats().idle_blocks, 0u);
  EXPECT_EQ(pool_->stats().live_blocks, 2u);
  EXPECT_TRUE(pool_->IsWritable(held.blocks()[0]));
  index_ = std::make_unique<PrefixIndex>(*pool_, PrefixIndexOptions());
}

TEST_F(PrefixIndexTest, ProgrammersErrors) {
  CachedSequence held = Hold(Text(1, 32));
  const PrefixNodeId node = index_->NodeOf(held.blocks()[0]).value();
  const std::optional<BlockId> block = held.blocks()[1];
  EXPECT_DEATH(index_->Insert(0, node, Text(1, 15), {&block, 1}), "tokens.size");
  EXPECT_DEATH(index_->Insert(1, node, Text(1, 16), {&block, 1}), "tenant_salt");
  EXPECT_DEATH(index_->Insert(0, node, Text(1, 16), {}), "blocks.size");
  EXPECT_DEATH(index_->Unpin(node), "pins > 0");
  EXPECT_DEATH(index_->LogProbs(node, 16), "slot < ");
  EXPECT_DEATH(index_->block(PrefixNodeId(50)), "has_value");
  PromptLogProbs many;
  many.best.resize(kKeptAlternatives + 1);
  EXPECT_DEATH(index_->KeepLogProbs(node, 0, many), "kKeptAlternatives");
  held.Reset();
  EXPECT_DEATH(index_->Insert(0, node, Text(5, 16), {&block, 1}), "used");
}

}  // namespace
}  // namespace kvasir::kvcache
