// A tap sees every row of every item and layer once, and changes no bit.
#include "model/step_tap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "kvcache/block_pool.h"
#include "model/deepseek_model.h"
#include "model/model_test_util.h"

namespace kvasir::model {
namespace {

constexpr std::size_t kLengths[] = {9, 14};  // Of two texts,
constexpr std::size_t kWanted[] = {0, 5};    // and rows whose logits are wanted.

// How often each position of each item and layer came by.
class CountingTap : public StepTap {
 public:
  using Counts = std::map<std::tuple<std::size_t, std::size_t, std::size_t>, int>;

  void OnHidden(const TapRows& rows, const float* x) override {
    ASSERT_NE(x, nullptr);
    Count(rows, hidden);
  }
  void OnAttention(const base::Member& member, const TapRows& rows, std::size_t first_head,
                   const kernels::AttentionArgs& args) override {
    ASSERT_EQ(first_head, 0u);
    ASSERT_EQ(args.first_position, rows.first_position);
    if (member.index() == 0) Count(rows, attention);
  }
  void OnLatentAttention(const base::Member& member, const TapRows& rows,
                         const kernels::LatentAttentionArgs& args) override {
    ASSERT_EQ(args.first_position, rows.first_position);
    if (member.index() == 0) Count(rows, attention);
  }

  Counts hidden, attention;

 private:
  static void Count(const TapRows& rows, Counts& counts) {
    for (std::size_t i = 0; i < rows.count; ++i) {
      counts[{rows.layer, rows.item, rows.first_position + i}] += 1;
    }
  }
};

std::vector<float> Logits(const Model& model, StepTap* tap) {
  const auto geometry = kvcache::CacheGeometry::Make(model.shape().Cache(16)).value();
  const auto pool =
      kvcache::BlockPool::Make(geometry, {.budget_bytes = 8 * geometry.block_bytes()}).value();
  std::vector<kvcache::CachedSequence> sequences;
  std::vector<std::vector<TokenId>> texts;
  std::vector<BatchItem> items;
  for (const std::size_t length : kLengths) {
    sequences.emplace_back(*pool);
    std::vector<TokenId>& text = texts.emplace_back(length);
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<TokenId>(i * 5 + length) % 67;
  }
  for (std::size_t i = 0; i < 2; ++i) items.push_back({&sequences[i], texts[i], kWanted[i]});
  base::ThreadTeam team(2);
  Scratch scratch;
  scratch.set_tap(tap);
  std::vector<float> logits((kWanted[0] + kWanted[1]) * model.shape().vocab);
  EXPECT_TRUE(model.Forward(items, scratch, team, logits).has_value());
  return logits;
}

void ExpectSeesAllAndChangesNothing(const Model& model) {
  CountingTap tap;
  EXPECT_EQ(Logits(model, &tap), Logits(model, nullptr));
  CountingTap::Counts hidden, attention;
  for (std::size_t item = 0; item < 2; ++item) {
    for (std::size_t t = 0; t < kLengths[item]; ++t) {
      const bool wanted = t + kWanted[item] >= kLengths[item];
      for (std::size_t layer = 0; layer < 2; ++layer) {
        hidden[{layer, item, t}] = 1;
        if (layer == 0 || wanted) attention[{layer, item, t}] = 1;
      }
      if (wanted) hidden[{2, item, t}] = 1;
    }
  }
  EXPECT_EQ(tap.hidden, hidden);
  EXPECT_EQ(tap.attention, attention);
}

TEST(StepTapTest, SeesAllAndChangesNothing) {
  const TensorSource source = RandomSource(0.3f);
  {
    SCOPED_TRACE("gpt2");
    ExpectSeesAllAndChangesNothing(*Gpt2Model::Make(TestConfig(), source).value());
  }
  {
    SCOPED_TRACE("llama");
    ExpectSeesAllAndChangesNothing(*LlamaModel::Make(TestLlamaConfig(), source).value());
  }
  {
    SCOPED_TRACE("deepseek2");
    ExpectSeesAllAndChangesNothing(*DeepseekModel::Make(TestDeepseekConfig(13), source).value());
  }
}

}  // namespace
}  // namespace kvasir::model
