#include "engine/best_of.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace kvasir::engine {
namespace {

ChoiceResult Choice(std::uint32_t index, const std::vector<double>& logprobs) {
  ChoiceResult choice;
  choice.index = index;
  for (const double logprob : logprobs) choice.tokens.push_back({.logprob = logprob});
  return choice;
}

std::vector<std::uint32_t> Kept(std::vector<ChoiceResult> choices, std::uint64_t best_of) {
  std::vector<std::uint32_t> indices;
  for (const ChoiceResult& choice : BestOf(std::move(choices), best_of)) {
    indices.push_back(choice.index);
  }
  return indices;
}

TEST(BestOfTest, ComparesMeansNotSums) {
  EXPECT_EQ(MeanLogProb(Choice(0, {})), 0);
  EXPECT_EQ(MeanLogProb(Choice(0, {-1, -2})), -1.5);
  const std::vector<ChoiceResult> choices = {Choice(0, {-2}), Choice(1, {-1, -1, -1, -1}),
                                             Choice(2, {-3, -1}), Choice(3, {-2})};
  using Indices = std::vector<std::uint32_t>;
  EXPECT_EQ(Kept(choices, 1), (Indices{0, 1, 2, 3}));
  EXPECT_EQ(Kept(choices, 2), (Indices{1, 2}));  // Of equals the first.
  EXPECT_EQ(Kept(choices, 4), (Indices{1}));
  EXPECT_EQ(Kept({}, 4), Indices{});
}

}  // namespace
}  // namespace kvasir::engine
