#include "engine/step_pacer.h"

#include <gtest/gtest.h>

#include <random>

namespace kvasir::engine {
namespace {

// A machine whose steps take this long.
std::uint64_t StepUs(std::size_t texts, std::size_t prompts) {
  return 1000 + 20 * texts + 50 * prompts;
}

TEST(StepPacer, WithoutATimeOnlyTheTokensCount) {
  StepPacer some({.most_tokens = 64}, 512);
  EXPECT_EQ(some.Budget(1), 64u);
  some.Took(1, 0, 10);
  some.Took(1, 63, 1000000);
  EXPECT_EQ(some.Budget(1), 64u);
  EXPECT_EQ(some.Budget(100), 100u);  // Every text has a token.
  EXPECT_EQ(StepPacer({}, 512).Budget(1), 512u);
  EXPECT_EQ(StepPacer({.most_tokens = 1000}, 512).Budget(1), 512u);
}

TEST(StepPacer, LearnsHowMuchFitsIntoTheTime) {
  StepPacer pacer({.most_tokens = 400, .most_time = 2.5}, 512);
  for (int round = 0; round < 200; ++round) {
    pacer.Took(8, 0, StepUs(8, 0));
    const std::size_t prompts = pacer.Budget(8) - 8;
    pacer.Took(8, prompts, StepUs(8, prompts));
  }
  const std::size_t prompts = pacer.Budget(8) - 8;
  EXPECT_LE(StepUs(8, prompts), StepUs(8, 0) * 251 / 100);
  EXPECT_GE(StepUs(8, prompts + 1), StepUs(8, 0) * 249 / 100);
  // What 8 texts take is a guess for 40 as well, though not for 7.
  EXPECT_EQ(pacer.Budget(40) - 40, prompts);
  EXPECT_LT(pacer.Budget(7) - 7, prompts);
}

TEST(StepPacer, AFewFreeTokensDoNotPromiseMany) {
  StepPacer pacer({.most_tokens = 400, .most_time = 2.5}, 512);
  pacer.Took(8, 0, 1000);
  pacer.Took(8, 16, 1001);
  EXPECT_EQ(pacer.Budget(8), 8u + 32u);
}

TEST(StepPacer, OneLateStepIsNoNewMachine) {
  StepPacer pacer({.most_tokens = 400, .most_time = 2.5}, 512);
  for (int round = 0; round < 100; ++round) {
    pacer.Took(8, 0, StepUs(8, 0));
    pacer.Took(8, 30, StepUs(8, 30));
  }
  const std::size_t before = pacer.Budget(8);
  pacer.Took(8, 30, 10'000'000);
  EXPECT_GE(pacer.Budget(8) - 8, (before - 8) / 2);
  for (int round = 0; round < 50; ++round) pacer.Took(8, 30, StepUs(8, 30));
  EXPECT_NEAR(static_cast<double>(pacer.Budget(8)), static_cast<double>(before), 1);
}

TEST(StepPacer, WhateverIsMeasuredTheBudgetKeepsItsBounds) {
  std::mt19937_64 random(1);
  StepPacer pacer({.most_tokens = 100, .most_time = 1}, 512);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t texts = random() % 200;
    pacer.Took(texts, random() % 3 * (random() % 500), random() % 2 * (random() % 100000));
    for (const std::size_t asked : {1, 5, 99, 100, 5000}) {
      const std::size_t budget = pacer.Budget(asked);
      EXPECT_GE(budget, asked);
      EXPECT_LE(budget, std::max<std::size_t>(100, asked));
      if (asked < 96) {
        EXPECT_GE(budget, asked + 1);  // Prompts go on.
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::engine
