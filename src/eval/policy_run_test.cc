#include "eval/policy_run.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "eval/eval_test_models.h"

namespace kvasir::eval {
namespace {

using kvcache::CachePolicy;

std::vector<base::TokenId> SomeTokens(std::size_t count) {
  std::vector<base::TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 3u);
  return tokens;
}

TEST(PolicyRunTest, OffEqualsOnForEveryKindOfPolicy) {
  const auto model = TinyGpt2(65);
  base::ThreadTeam team(2);
  for (const char* spec : {"full", "dtype=int8", "k=int4,group=16,v=int4", "window=7,sinks=2",
                           "store=hidden", "0:store=none;1.1:window=3,rotate,dtype=int4"}) {
    const auto policy = CachePolicy::Parse(spec, model->shape().Policy());
    ASSERT_TRUE(policy) << policy.error().message;
    const auto checked = CheckPolicy(*model, SomeTokens(40), policy.value(), 16, team);
    ASSERT_TRUE(checked) << checked.error().message;
    EXPECT_EQ(checked.value().comparisons, 8u) << spec;
    EXPECT_EQ(checked.value().mismatches, 0u) << spec;
  }
  // Fewer places than tokens.
  const auto full = CachePolicy::Full(2, 2);
  EXPECT_EQ(CheckPolicy(*model, SomeTokens(3), full, 16, team).value().comparisons, 3u);
}

TEST(PolicyRunTest, SeesWhatDependsOnHowTheWorkIsCut) {
  const auto inner = TinyGpt2(65);
  base::ThreadTeam team(1);
  const MeddledModel model(*inner, [](const MeddledModel::Step& step) {
    if (step.lengths[0] > 0) step.logits[7] += 1;
  });
  const auto checked = CheckPolicy(model, SomeTokens(40), CachePolicy::Full(2, 2), 16, team);
  ASSERT_TRUE(checked);
  EXPECT_GE(checked.value().mismatches, 7u);
}

TEST(PolicyRunTest, TimesEveryPolicyAtBothEnds) {
  const auto model = TinyGpt2(65);
  base::ThreadTeam team(1);
  const CachePolicy policies[] = {CachePolicy::Full(2, 2), CachePolicy::Full(2, 2)};
  for (const std::size_t tokens : {2u, 40u}) {
    const auto times = TimePolicies(*model, SomeTokens(tokens), policies, {.repetitions = 2}, team);
    ASSERT_TRUE(times) << times.error().message;
    ASSERT_EQ(times.value().size(), 2u);
    for (const DecodeTimes& time : times.value()) {
      EXPECT_GT(time.start, 0);
      EXPECT_GT(time.end, 0);
    }
  }
}

}  // namespace
}  // namespace kvasir::eval
