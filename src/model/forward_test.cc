// One row's bits depend on its sequence's tokens and on nothing else: every architecture.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <ostream>

#include "base/hash.h"
#include "kernels/targets.h"
#include "kvcache/block_pool.h"
#include "model/deepseek_model.h"
#include "model/gpt2_model.h"
#include "model/llama_model.h"
#include "model/model_test_util.h"
#include "model/rounded_source.h"
#include "model/step_rows.h"

namespace kvasir::model {
namespace {

struct Case {
  const char* name;
  std::function<std::unique_ptr<Model>()> make;
  std::uint64_t golden;  // Hash of all logits of Tokens(context, 1).

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

std::unique_ptr<Model> MakeLlama(const LlamaConfig& config) {
  KV_CHECK(CheckConfig(config).has_value());
  return LlamaModel::Make(config, RandomSource(0.3f)).value();
}

class ForwardTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { UseModel(GetParam().make()); }
  void UseModel(std::unique_ptr<Model> model) {
    pool_.reset();
    model_ = std::move(model);
    context_ = model_->shape().context;
    vocab_ = model_->shape().vocab;
    UseBlocks(16, {});
  }
  void UseBlocks(std::uint64_t block_tokens, std::optional<std::uint64_t> placement) {
    pool_ = kvcache::BlockPool::Make(
                kvcache::CacheGeometry::Make(model_->shape().Cache(block_tokens)).value(),
                {.budget_bytes = 64 << 20, .placement_seed = placement})
                .value();
  }
  std::vector<TokenId> Tokens(std::size_t count, std::uint32_t stream) const {
    std::vector<TokenId> tokens(count);
    for (std::size_t i = 0; i < count; ++i) {
      tokens[i] = base::Philox4x32(kTestSeed, {static_cast<std::uint32_t>(i), stream, 7, 0})[0] %
                  static_cast<std::uint32_t>(vocab_);
    }
    return tokens;
  }
  // All rows of one sequence, in chunks.
  std::vector<float> Rows(const std::vector<TokenId>& tokens, std::size_t chunk,
                          std::size_t threads = 1) {
    kvcache::CachedSequence sequence(*pool_);
    return Continue(sequence, tokens, chunk, threads);
  }
  // Rows of the tokens after those that the sequence holds.
  std::vector<float> Continue(kvcache::CachedSequence& sequence, std::span<const TokenId> tokens,
                              std::size_t chunk, std::size_t threads) {
    base::ThreadTeam team(threads);
    std::vector<float> all;
    for (std::size_t at = 0; at < tokens.size(); at += chunk) {
      const std::size_t count = std::min(chunk, tokens.size() - at);
      const BatchItem item{&sequence, tokens.subspan(at, count), count};
      std::vector<float> logits(count * vocab_);
      EXPECT_TRUE(model_->Forward(std::span(&item, 1), scratch_, team, logits).has_value());
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }
  std::span<const float> Row(const std::vector<float>& rows, std::size_t position) const {
    return std::span(rows).subspan(position * vocab_, vocab_);
  }
  static bool SameBits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
  }

  std::unique_ptr<Model> model_;
  std::size_t context_ = 0;
  std::size_t vocab_ = 0;
  std::unique_ptr<kvcache::BlockPool> pool_;
  Scratch scratch_;
};

TEST_P(ForwardTest, ChunksThreadsBlocksPlacementAndTargetsGiveTheSameBits) {
  const auto tokens = Tokens(context_, 1);
  const auto expected = Rows(tokens, 1);
  for (std::size_t chunk :
       {std::size_t{2}, std::size_t{3}, std::size_t{7}, std::size_t{16}, context_ - 1, context_}) {
    EXPECT_TRUE(SameBits(expected, Rows(tokens, chunk))) << chunk;
  }
  for (std::size_t threads : {2u, 3u, 8u}) {
    for (std::size_t chunk : {1u, 19u}) {
      EXPECT_TRUE(SameBits(expected, Rows(tokens, chunk, threads))) << threads << " " << chunk;
    }
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
TEST_P(ForwardTest, NeighboursChangeNothing) {
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
    std::vector<float> logits(wanted * vocab_);
    ASSERT_TRUE(model_->Forward(items, scratch_, team, logits).has_value());
    std::size_t row = 0;
    for (std::size_t n = 0; n < items.size(); ++n) {
      const auto i = static_cast<std::size_t>(items[n].sequence - sequences.data());
      for (std::size_t r = 0; r < items[n].logit_rows; ++r, ++row) {
        const std::size_t position = ends[n] - items[n].logit_rows + r;
        EXPECT_TRUE(SameBits(Row(logits, row), Row(expected[i], position)))
            << "sequence " << i << " position " << position;
      }
    }
    EXPECT_EQ(row, wanted);
  }
}

TEST_P(ForwardTest, ForkCopyOnWriteAndTruncateChangeNothing) {
  const auto tokens = Tokens(context_, 3);
  const std::size_t at = context_ / 3 + 3;  // Inside a block.
  auto other = Tokens(context_, 4);
  std::copy_n(tokens.begin(), at, other.begin());
  const auto expected = Rows(tokens, 1);
  const auto other_expected = Rows(other, 1);
  const auto from = [&](const std::vector<float>& rows) {
    return std::span(rows).subspan(at * vocab_);
  };
  for (const std::uint64_t block : {16u, 64u}) {
    UseBlocks(block, 5);
    kvcache::CachedSequence trunk(*pool_);
    Continue(trunk, std::span(tokens).first(at), 9, 1);
    kvcache::CachedSequence branch = trunk.Fork();
    const std::span<const TokenId> rest = std::span(tokens).subspan(at);
    EXPECT_TRUE(
        SameBits(Continue(branch, std::span(other).subspan(at), 10, 1), from(other_expected)));
    EXPECT_TRUE(SameBits(Continue(trunk, rest, 20, 1), from(expected)));
    const std::size_t left = branch.Truncate(at);  // And overwritten with the trunk's text.
    EXPECT_TRUE(SameBits(Continue(branch, std::span(tokens).subspan(left), 1, 1),
                         std::span(expected).subspan(left * vocab_)));
  }
}

TEST_P(ForwardTest, ErrorsLeaveSequencesAsTheyWere) {
  base::ThreadTeam team(1);
  kvcache::CachedSequence sequence(*pool_);
  const auto tokens = Tokens(context_ + 1, 2);
  std::vector<float> logits(vocab_);
  const auto forward = [&](std::span<const TokenId> part) {
    const BatchItem item{&sequence, part, 1};
    return model_->Forward(std::span(&item, 1), scratch_, team, logits);
  };
  const auto too_long = forward(tokens);
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().message,
            fmt::format("{} tokens after 0 do not fit the model's context of {} tokens",
                        context_ + 1, context_));
  ASSERT_TRUE(forward(std::span(tokens).first(context_ - 1)).has_value());
  EXPECT_FALSE(forward(std::span(tokens).first(2)).has_value());
  EXPECT_EQ(sequence.length(), context_ - 1);
  const auto outside = static_cast<TokenId>(vocab_);
  const auto bad = forward(std::span(&outside, 1));
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().message.find(std::to_string(vocab_)), std::string::npos);
  EXPECT_EQ(sequence.length(), context_ - 1);
}

TEST_P(ForwardTest, RunningOutOfBlocksIsAnOrdinaryResult) {
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

// The contract's version 1 in one number a model: any change of any bit of the forward pass shows
// here, on every target, and must be meant.
TEST_P(ForwardTest, GoldenLogitsHash) {
  for (const kernels::Target& target : kernels::AvailableTargets()) {
    kernels::ForceTarget(target);
    const auto rows = Rows(Tokens(context_, 1), context_);
    EXPECT_EQ(base::HashSpan64(std::span<const float>(rows)), GetParam().golden) << target.name;
  }
  kernels::UseBestTarget();
}

LlamaConfig Changed(const std::function<void(LlamaConfig&)>& change) {
  LlamaConfig config = TestLlamaConfig();
  change(config);
  return config;
}

TensorSource Rounded(tensor::DType dtype) { return RoundedSource(RandomSource(0.3f), dtype); }

std::unique_ptr<Model> MakeRounded(tensor::DType dtype, bool tied) {
  Gpt2Config config = TestConfig();
  config.embedding = 64;
  config.feed_forward = 96;
  config.tied_head = tied;
  return Gpt2Model::Make(config, Rounded(dtype)).value();
}

LlamaConfig WholeBlocks() {
  return Changed([](LlamaConfig& c) {
    c.embedding = 64;
    c.head_dim = c.rope.dimensions = 16;
    c.feed_forward = 96;
    c.tied_head = true;
  });
}

const Case kCases[] = {
    {"gpt2", [] { return Gpt2Model::Make(TestConfig(), RandomSource(0.3f)).value(); },
     14017651102477595663ull},
    {"llama", [] { return MakeLlama(TestLlamaConfig()); }, 5654339111708238997ull},
    {"llama_multi_head",
     [] {
       return MakeLlama(Changed([](LlamaConfig& c) {
         c.kv_heads = c.heads;
         c.tied_head = true;
       }));
     },
     15530919334240366894ull},
    {"llama_multi_query_scaled",
     [] {
       return MakeLlama(Changed([](LlamaConfig& c) {
         c.heads = 7;
         c.kv_heads = 1;
         c.rope.factor = 2.5f;
         c.rope.divisors = {1.0f, 1.5f, 8.0f, 8.0f, 8.0f};
       }));
     },
     7991502940238270757ull},
    {"qwen2",
     [] {
       return MakeLlama(Changed([](LlamaConfig& c) {
         c.family = LlamaFamily::kQwen2;
         c.rope.pairing = PairingOf(c.family);
         c.qkv_bias = true;
       }));
     },
     5415991328699216847ull},
    {"qwen3_part_rotary",
     [] {
       return MakeLlama(Changed([](LlamaConfig& c) {
         c.family = LlamaFamily::kQwen3;
         c.rope.pairing = PairingOf(c.family);
         c.head_norms = true;
         c.rope.dimensions = 6;
       }));
     },
     6115735289656321013ull},
    {"llama_windowed",
     [] {
       return MakeLlama(Changed([](LlamaConfig& c) {
         c.context = 150;
         c.windows = {21, 0};
       }));
     },
     10489060566909961694ull},
    {"deepseek2",
     [] { return DeepseekModel::Make(TestDeepseekConfig(0), RandomSource(0.3f)).value(); },
     9131714164452446073ull},
    {"deepseek2_query_rank",
     [] { return DeepseekModel::Make(TestDeepseekConfig(13), RandomSource(0.3f)).value(); },
     16463826836464337159ull},
    // Rounded weights: the contract's R6. Widths are whole blocks.
    {"gpt2_q8_0", [] { return MakeRounded(tensor::DType::kQ8_0, /*tied=*/false); },
     16370997554813407497ull},
    {"gpt2_q4_0_tied", [] { return MakeRounded(tensor::DType::kQ4_0, /*tied=*/true); },
     9255385869614068927ull},
    {"llama_q8_0_tied",
     [] { return LlamaModel::Make(WholeBlocks(), Rounded(tensor::DType::kQ8_0)).value(); },
     11874490235600487883ull},
    {"llama_q4_0",
     [] {
       LlamaConfig config = WholeBlocks();
       config.tied_head = false;
       return LlamaModel::Make(config, Rounded(tensor::DType::kQ4_0)).value();
     },
     2055513595440100845ull},
    {"deepseek2_q8_0",
     [] {
       DeepseekConfig config = TestDeepseekConfig(32);
       config.embedding = config.latent_dim = 64;
       config.feed_forward = 96;
       config.nope_dim = 32;
       config.split_up = true;
       return DeepseekModel::Make(config, Rounded(tensor::DType::kQ8_0)).value();
     },
     9958914997111478804ull},
};
INSTANTIATE_TEST_SUITE_P(Models, ForwardTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

class LlamaModelTest : public ForwardTest {
 protected:
  void SetUp() override {}
};

// Grouped queries are multi-head attention with keys and values said once: to the bit.
TEST_F(LlamaModelTest, GroupsAreHeadsThatShareTheirKeys) {
  const LlamaConfig grouped = Changed([](LlamaConfig& c) { c.heads = 6; });  // 2 kv heads
  UseModel(MakeLlama(grouped));
  const auto tokens = Tokens(context_, 4);
  const auto expected = Rows(tokens, 5);
  LlamaConfig full = grouped;
  full.kv_heads = full.heads;
  const TensorSource few = RandomSource(0.3f);
  std::vector<float> repeated;
  UseModel(LlamaModel::Make(full, [&](const TensorSpec& spec) {
             const bool shared =
                 spec.name.ends_with("attn_k.weight") || spec.name.ends_with("attn_v.weight");
             if (!shared) return few(spec);
             const std::size_t head_numbers = full.head_dim * full.embedding;
             const auto values = few({spec.name, {grouped.kv_width(), full.embedding}}).value();
             repeated.clear();
             for (std::size_t head = 0; head < full.heads; ++head) {
               const auto one = values.subspan(head / 3 * head_numbers, head_numbers);
               repeated.insert(repeated.end(), one.begin(), one.end());
             }
             return base::Result<std::span<const float>>(std::span<const float>(repeated));
           }).value());
  EXPECT_TRUE(SameBits(expected, Rows(tokens, 5)));
}

// With a window of W in both layers a row depends on the last 2 W − 1 tokens and on no other.
TEST_F(LlamaModelTest, WindowsForgetAndDoNotForgetTooSoon) {
  constexpr std::size_t kWindow = 21;
  UseModel(MakeLlama(Changed([](LlamaConfig& c) {
    c.context = 150;
    c.windows = {kWindow, kWindow};
  })));
  auto tokens = Tokens(context_, 5);
  const auto before = Rows(tokens, 13);
  constexpr std::size_t kChanged = 30;
  tokens[kChanged] = (tokens[kChanged] + 1) % static_cast<TokenId>(vocab_);
  const auto after = Rows(tokens, 13);
  for (std::size_t t = 0; t < context_; ++t) {
    const bool sees = t >= kChanged && t <= kChanged + 2 * (kWindow - 1);
    EXPECT_EQ(SameBits(Row(before, t), Row(after, t)), !sees) << t;
  }
}

// A window that no query outgrows is no window.
TEST_F(LlamaModelTest, AWindowAsLongAsTheContextIsNone) {
  UseModel(MakeLlama(TestLlamaConfig()));
  const auto tokens = Tokens(context_, 6);
  const auto expected = Rows(tokens, 9);
  UseModel(MakeLlama(Changed([](LlamaConfig& c) { c.windows = {c.context, c.context}; })));
  EXPECT_TRUE(SameBits(expected, Rows(tokens, 9)));
  UseModel(MakeLlama(Changed([](LlamaConfig& c) { c.windows = {c.context - 1, c.context - 1}; })));
  const auto shorter = Rows(tokens, 9);
  EXPECT_TRUE(SameBits(Row(expected, context_ - 2), Row(shorter, context_ - 2)));
  EXPECT_FALSE(SameBits(Row(expected, context_ - 1), Row(shorter, context_ - 1)));
}

TEST_F(LlamaModelTest, GivesItsTensorsBack) {
  const LlamaConfig config = Changed([](LlamaConfig& c) {
    c.qkv_bias = true;
    c.head_norms = true;
  });
  const auto model = LlamaModel::Make(config, RandomSource(0.3f)).value();
  const TensorSource source = RandomSource(0.3f);
  std::uint64_t numbers = 0;
  for (const TensorSpec& spec : LlamaTensors(config)) {
    const auto values = source(spec).value();
    EXPECT_EQ(model->TensorValues(spec), std::vector<float>(values.begin(), values.end()))
        << spec.name;
    numbers += values.size();
  }
  EXPECT_EQ(model->shape().parameters, numbers);
}

}  // namespace
}  // namespace kvasir::model
