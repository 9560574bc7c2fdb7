// Every cache policy computes one function of the tokens: the same bits with and without a cache,
// however the work is cut up. Lossless ones compute that of the full cache.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/targets.h"
#include "kvcache/sequence_manager.h"
#include "model/gpt2_model.h"
#include "model/llama_model.h"
#include "model/model_test_util.h"

namespace kvasir::model {
namespace {

using kvcache::CachedSequence;

enum class Kind { kGpt2, kLlama, kQwen, kWindowed };

std::unique_ptr<Model> MakeModel(Kind kind) {
  if (kind == Kind::kGpt2) {
    Gpt2Config config = TestConfig();
    config.layers = 3;
    config.heads = 3;
    config.context = 150;
    return Gpt2Model::Make(config, RandomSource(0.4f)).value();
  }
  LlamaConfig config = TestLlamaConfig();
  config.layers = 3;
  config.context = 150;
  config.vocab = 67;
  if (kind == Kind::kQwen) {
    config.head_norms = true;
    config.rope.pairing = kernels::RopePairing::kHalves;
    config.head_dim = 16;
    config.rope.dimensions = 8;
    config.heads = config.kv_heads = 3;
  }
  if (kind == Kind::kWindowed) config.windows = {0, 9, 20};
  return LlamaModel::Make(config, RandomSource(0.4f)).value();
}

struct Case {
  Kind kind;
  const char* spec;
  std::uint64_t block_tokens = 16;  // What its groups of keys allow.
  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << static_cast<int>(c.kind) << " " << c.spec;
  }
};

class PolicyWorld {
 public:
  explicit PolicyWorld(Kind kind) : model_(MakeModel(kind)) {}

  void Use(const char* spec, std::uint64_t block_tokens,
           std::optional<std::uint64_t> placement = std::nullopt) {
    pool_.reset();
    const auto policy = kvcache::CachePolicy::Parse(spec, model_->shape().Policy());
    ASSERT_TRUE(policy.has_value()) << policy.error().message;
    const auto geometry =
        kvcache::CacheGeometry::Make(model_->shape().Cache(block_tokens, policy.value()));
    ASSERT_TRUE(geometry.has_value()) << geometry.error().message;
    pool_ = kvcache::BlockPool::Make(geometry.value(),
                                     {.budget_bytes = 64 << 20, .placement_seed = placement})
                .value();
  }
  std::vector<TokenId> Tokens(std::size_t count, std::uint32_t stream) const {
    std::vector<TokenId> tokens(count);
    for (std::size_t i = 0; i < count; ++i) {
      tokens[i] = base::Philox4x32(kTestSeed, {static_cast<std::uint32_t>(i), stream, 7, 0})[0] %
                  static_cast<std::uint32_t>(vocab());
    }
    return tokens;
  }
  // Rows of the tokens after those that the sequence holds, in chunks.
  std::vector<float> Continue(CachedSequence& sequence, std::span<const TokenId> tokens,
                              std::size_t chunk, std::size_t threads = 1) {
    base::ThreadTeam team(threads);
    std::vector<float> all;
    for (std::size_t at = 0; at < tokens.size(); at += chunk) {
      const std::size_t count = std::min(chunk, tokens.size() - at);
      const BatchItem item{&sequence, tokens.subspan(at, count), count};
      std::vector<float> logits(count * vocab());
      const auto done = model_->Forward(std::span(&item, 1), scratch_, team, logits);
      EXPECT_TRUE(done.has_value()) << done.error().message;
      all.insert(all.end(), logits.begin(), logits.end());
      sequence.CheckInvariants();
    }
    return all;
  }
  std::vector<float> Rows(std::span<const TokenId> tokens, std::size_t chunk,
                          std::size_t threads = 1) {
    CachedSequence sequence(*pool_);
    return Continue(sequence, tokens, chunk, threads);
  }
  std::span<const float> Row(const std::vector<float>& rows, std::size_t position) const {
    return std::span(rows).subspan(position * vocab(), vocab());
  }
  std::size_t vocab() const { return model_->shape().vocab; }
  Model& model() { return *model_; }
  kvcache::BlockPool& pool() { return *pool_; }
  Scratch& scratch() { return scratch_; }

 private:
  std::unique_ptr<Model> model_;
  std::unique_ptr<kvcache::BlockPool> pool_;
  Scratch scratch_;
};

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class PolicyTest : public testing::TestWithParam<Case> {
 protected:
  PolicyTest() : world_(GetParam().kind) { world_.Use(GetParam().spec, GetParam().block_tokens); }
  PolicyWorld world_;
};

// "Off" is one step from an empty sequence; everything else must equal it.
TEST_P(PolicyTest, ChunksThreadsBlocksPlacementAndTargetsGiveTheSameBits) {
  const std::vector<TokenId> tokens = world_.Tokens(140, 1);
  const std::vector<float> off = world_.Rows(tokens, tokens.size());
  for (const std::size_t chunk : {1u, 2u, 7u, 16u, 33u, 64u, 139u}) {
    EXPECT_TRUE(SameBits(off, world_.Rows(tokens, chunk))) << chunk;
  }
  for (const std::size_t threads : {2u, 3u}) {
    for (const std::size_t chunk : {1u, 50u}) {
      EXPECT_TRUE(SameBits(off, world_.Rows(tokens, chunk, threads))) << threads << " " << chunk;
    }
  }
  for (const kernels::Target& target : kernels::AvailableTargets()) {
    kernels::ForceTarget(target);
    EXPECT_TRUE(SameBits(off, world_.Rows(tokens, 11))) << target.name;
  }
  kernels::UseBestTarget();
  for (const std::uint64_t block : {32u, 64u, 256u}) {
    if (block % GetParam().block_tokens != 0) continue;
    world_.Use(GetParam().spec, block, block);
    EXPECT_TRUE(SameBits(off, world_.Rows(tokens, 9))) << block;
  }
}

// Forks, truncation (also to where a window has passed, or inside a rounded group), and neighbours.
TEST_P(PolicyTest, ForksTruncationAndNeighboursChangeNothing) {
  base::ThreadTeam team(2);
  std::vector<std::vector<TokenId>> texts;
  std::vector<std::vector<float>> off;
  for (const std::uint32_t n : {1u, 2u, 3u}) {
    texts.push_back(world_.Tokens(120, n));
    off.push_back(world_.Rows(texts.back(), 120));
  }
  CachedSequence trunk(world_.pool());
  world_.Continue(trunk, std::span(texts[0]).first(70), 23);
  CachedSequence fork = trunk.Fork();
  for (const std::size_t length : {69u, 64u, 60u, 49u, 33u, 3u, 0u}) {
    CachedSequence twin = trunk.Fork();
    const std::size_t left = twin.Truncate(length);
    ASSERT_LE(left, length);
    const auto rest = world_.Continue(twin, std::span(texts[0]).subspan(left), 17);
    EXPECT_TRUE(SameBits(std::span(off[0]).subspan(left * world_.vocab()), rest)) << length;
  }
  const auto branch = world_.Continue(fork, std::span(texts[0]).subspan(70), 1);
  EXPECT_TRUE(SameBits(std::span(off[0]).subspan(70 * world_.vocab()), branch));
  // A batch of the trunk and two more, prefill beside decode.
  CachedSequence second(world_.pool());
  CachedSequence third(world_.pool());
  world_.Continue(third, std::span(texts[2]).first(31), 31);
  const BatchItem items[] = {{&trunk, std::span(texts[0]).subspan(70, 1), 1},
                             {&second, std::span(texts[1]).first(90), 2},
                             {&third, std::span(texts[2]).subspan(31, 40), 40}};
  std::vector<float> logits(43 * world_.vocab());
  ASSERT_TRUE(world_.model().Forward(items, world_.scratch(), team, logits).has_value());
  EXPECT_TRUE(SameBits(world_.Row(logits, 0), world_.Row(off[0], 70)));
  EXPECT_TRUE(SameBits(world_.Row(logits, 2), world_.Row(off[1], 89)));
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_TRUE(SameBits(world_.Row(logits, 3 + i), world_.Row(off[2], 31 + i))) << i;
  }
}

// Prefixes found in the cache, also inside a block, and preempted sequences that come back.
TEST_P(PolicyTest, PrefixHitsAndResumptionChangeNothing) {
  auto manager =
      kvcache::SequenceManager::Make(world_.pool().geometry(), {.pool = {.budget_bytes = 64 << 20}})
          .value();
  const std::vector<TokenId> text = world_.Tokens(120, 1);
  const std::vector<float> off = world_.Rows(text, 120);
  const auto advance = [&](kvcache::SequenceId id, std::size_t end, std::size_t chunk) {
    while (manager->cache(id).length() < end) {
      const std::size_t at = manager->cache(id).length();
      const std::size_t count = std::min(chunk, end - at);
      const auto tokens = std::span(text).subspan(at, count);
      const auto rows = world_.Continue(manager->cache(id), tokens, count);
      EXPECT_TRUE(SameBits(std::span(off).subspan(at * world_.vocab(), rows.size()), rows)) << at;
      manager->Commit(id, tokens);
      manager->CheckInvariants();
    }
  };
  const kvcache::SequenceId first = manager->Create();
  advance(first, 100, 13);
  for (const std::size_t wanted : {99u, 100u, 48u, 50u, 90u, 120u}) {
    const kvcache::SequenceId id = manager->Create();
    const std::size_t found = manager->TakePrefix(id, std::span(text).first(wanted));
    EXPECT_LE(found, wanted);
    advance(id, std::max(found + 1, wanted), 30);
    manager->Preempt(id, kvcache::Preemption::kDrop);
    ASSERT_TRUE(manager->Resume(id).has_value());
    advance(id, std::max(found + 1, wanted), 7);
    manager->Truncate(id, wanted - 5);
    advance(id, 120, 40);
    manager->Finish(id);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, PolicyTest,
    testing::Values(
        Case{Kind::kGpt2, "full"}, Case{Kind::kGpt2, "window=9"},
        Case{Kind::kGpt2, "window=20,sinks=3"}, Case{Kind::kGpt2, "dtype=f16"},
        Case{Kind::kGpt2, "dtype=bf16;1:dtype=int8"}, Case{Kind::kGpt2, "k=int8,v=int4,rotate"},
        Case{Kind::kGpt2, "k=int4,group=32,v=int8", 32},
        Case{Kind::kGpt2, "k=int4,group=16,v=int4;2:window=30,sinks=2"},
        Case{Kind::kGpt2, "store=hidden"}, Case{Kind::kGpt2, "1:store=hidden;2:dtype=int4"},
        Case{Kind::kGpt2, "store=hidden,window=25,sinks=4"}, Case{Kind::kGpt2, "store=none"},
        Case{Kind::kGpt2, "1:store=none;2:dtype=int8"}, Case{Kind::kGpt2, "0.1:store=none"},
        Case{Kind::kGpt2, "0:store=none;1:store=hidden;2.0:window=5"},
        Case{Kind::kGpt2, "dtype=f16;1-2:dtype=int8,window=40,sinks=4;1.0-1:window=12"},
        Case{Kind::kLlama, "full"}, Case{Kind::kLlama, "window=9"},
        Case{Kind::kLlama, "window=20,sinks=3"}, Case{Kind::kLlama, "window=1"},
        Case{Kind::kLlama, "window=20,sinks=20,dtype=int8,rotate"},
        Case{Kind::kLlama, "k=int4,group=32,v=int8", 32},
        Case{Kind::kLlama, "k=int4,group=64,v=int4,rotate", 64},
        Case{Kind::kLlama, "k=int4,group=16,window=30"}, Case{Kind::kLlama, "store=hidden"},
        Case{Kind::kLlama, "2:store=none"},
        Case{Kind::kLlama, "1.1:store=none,window=11;2:store=hidden"},
        Case{Kind::kLlama, "0.0:window=7,sinks=2,dtype=f16;0.1:dtype=int4;2:window=33,sinks=1"},
        Case{Kind::kQwen, "window=17,sinks=4,dtype=int8,rotate"}, Case{Kind::kQwen, "store=hidden"},
        Case{Kind::kQwen, "1:store=none"}, Case{Kind::kQwen, "0.0+2:window=6;k=int4,v=bf16"},
        Case{Kind::kWindowed, "full"}, Case{Kind::kWindowed, "window=12,sinks=2"},
        Case{Kind::kWindowed, "store=hidden"}, Case{Kind::kWindowed, "1:store=none"}));

// Lossless policies, and windows that a model has of its own.
TEST(PolicyFunctionTest, LosslessPoliciesEqualTheFullCache) {
  for (const Kind kind : {Kind::kGpt2, Kind::kLlama, Kind::kQwen, Kind::kWindowed}) {
    PolicyWorld world(kind);
    world.Use("full", 16);
    const std::vector<TokenId> tokens = world.Tokens(140, 1);
    const std::vector<float> full = world.Rows(tokens, 140);
    for (const char* spec : {"store=hidden", "store=none", "1:store=none", "2.1:store=none",
                             "0-1:store=hidden;2:store=none", "window=140"}) {
      world.Use(spec, 16);
      EXPECT_TRUE(SameBits(full, world.Rows(tokens, 37))) << static_cast<int>(kind) << spec;
    }
    for (const char* spec : {"window=60", "dtype=int8", "k=bf16", "rotate"}) {
      world.Use(spec, 16);
      EXPECT_FALSE(SameBits(full, world.Rows(tokens, 37))) << static_cast<int>(kind) << spec;
    }
  }
  PolicyWorld windowed(Kind::kWindowed);
  windowed.Use("full", 16);
  PolicyWorld plain(Kind::kLlama);
  plain.Use("1:window=9;2:window=20", 16);
  const std::vector<TokenId> tokens = plain.Tokens(140, 1);
  EXPECT_TRUE(SameBits(windowed.Rows(tokens, 8), plain.Rows(tokens, 140)));
}

// A token reaches exactly layers · (window − 1) positions ahead, and with sinks the first ones
// reach everywhere.
TEST(PolicyFunctionTest, AWindowsInfluenceIsExact) {
  PolicyWorld world(Kind::kLlama);
  for (const std::size_t chunk : {1u, 5u, 16u, 100u}) {
    world.Use("window=6", 16);
    std::vector<TokenId> tokens = world.Tokens(100, 1);
    const std::vector<float> before = world.Rows(tokens, chunk);
    tokens[40] ^= 1;
    const std::vector<float> after = world.Rows(tokens, chunk);
    for (std::size_t p = 0; p < 100; ++p) {
      const bool reached = p >= 40 && p <= 40 + 3 * 5;
      EXPECT_EQ(!SameBits(world.Row(before, p), world.Row(after, p)), reached) << p << " " << chunk;
    }
    world.Use("window=6,sinks=2", 16);
    const std::vector<float> sinks = world.Rows(tokens, chunk);
    tokens[1] ^= 1;
    const std::vector<float> moved = world.Rows(tokens, chunk);
    for (std::size_t p = 1; p < 100; ++p) {
      EXPECT_FALSE(SameBits(world.Row(sinks, p), world.Row(moved, p))) << p << " " << chunk;
    }
  }
}

// Beyond the context a model of rotary windows goes on, in constant memory.
TEST(PolicyFunctionTest, RotaryWindowsGoOnWithoutEnd) {
  PolicyWorld world(Kind::kLlama);
  world.Use("window=20,sinks=3", 16);
  CachedSequence sequence(world.pool());
  const std::vector<TokenId> tokens = world.Tokens(1000, 1);
  std::vector<float> rows = world.Continue(sequence, std::span(tokens).first(200), 200);
  std::uint64_t most = 0;
  for (std::size_t p = 200; p < 1000; ++p) {
    rows = world.Continue(sequence, std::span(tokens).subspan(p, 1), 1);
    most = std::max(most, sequence.held_bytes());
  }
  EXPECT_LE(most, 4 * world.pool().geometry().block_bytes());
  const std::vector<float> off = world.Rows(tokens, 1000);
  EXPECT_TRUE(SameBits(rows, world.Row(off, 999)));
}

TEST(PolicyFunctionTest, OneFullLayerKeepsTheContext) {
  PolicyWorld world(Kind::kLlama);
  const std::vector<TokenId> tokens = world.Tokens(151, 1);
  world.Use("0:window=20;1-2:full", 16);
  CachedSequence bounded(world.pool());
  base::ThreadTeam team(1);
  const BatchItem item{&bounded, std::span(tokens).first(151), 0};
  const auto refused = world.model().Forward(std::span(&item, 1), world.scratch(), team, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
}

}  // namespace
}  // namespace kvasir::model
