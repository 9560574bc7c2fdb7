// That these axes go where they say: what they compute tells what was found and what was lost.
#include <gtest/gtest.h>

#include <cstdint>

#include "eval/eval_test_models.h"
#include "eval/verify_axes.h"

namespace kvasir::eval {
namespace {

class VerifyCacheAxesTest : public testing::Test {
 protected:
  // Tokens computed by an axis over `seeds` worlds, and in *texts the tokens of its sequences, the
  // first and the few others it takes, counted once.
  std::uint64_t Computed(base::Result<void> (*axis)(const AxisTrial&), std::uint64_t* texts) {
    const auto inner = TinyGpt2(29, 70);
    std::uint64_t computed = 0;
    const MeddledModel model(*inner, [&](const MeddledModel::Step& step) {
      EXPECT_EQ(step.items.size(), 1u);
      computed += step.items[0].tokens.size();
    });
    *texts = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      std::vector<PlainSequence> world(3);
      RandomStream random(seed);
      for (PlainSequence& plain : world) {  // They part somewhere in the last quarter.
        for (std::size_t i = 0; i < 66; ++i) {
          plain.tokens.push_back(i < 50 ? static_cast<base::TokenId>(i % 7)
                                        : static_cast<base::TokenId>(random.Below(29)));
        }
        plain.ChooseRows(1, random);
        EXPECT_TRUE(plain.RunPlainly(*inner));
        *texts += plain.tokens.size();
      }
      VerifyReport report;
      RowComparer comparer(report, 29);
      EXPECT_TRUE(axis({model, world, teams_, comparer, random, std::nullopt}));
      EXPECT_EQ(report.mismatches(), 0u) << report.first_mismatch;
    }
    return computed;
  }

  TeamSet teams_;
};

TEST_F(VerifyCacheAxesTest, PrefixesAreFoundAndAtTimesLost) {
  std::uint64_t texts = 0;
  const std::uint64_t computed = Computed(RunPrefixAxis, &texts);
  EXPECT_LT(computed, texts);  // Each text stands twice, and only the first begins from nothing.
  EXPECT_GT(computed, texts / 6);
}

TEST_F(VerifyCacheAxesTest, WhatWasLostIsComputedAgain) {
  std::uint64_t texts = 0;
  EXPECT_GT(Computed(RunRestoreAxis, &texts), texts);
}

}  // namespace
}  // namespace kvasir::eval
