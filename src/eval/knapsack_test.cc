#include "eval/knapsack.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace kvasir::eval {
namespace {

using Items = std::vector<std::vector<KnapsackChoice>>;

KnapsackChoice Total(const Items& items, const std::vector<std::size_t>& chosen) {
  KnapsackChoice total;
  for (std::size_t i = 0; i < items.size(); ++i) {
    total.bytes += items[i][chosen[i]].bytes;
    total.loss += items[i][chosen[i]].loss;
  }
  return total;
}

// All combinations, one by one.
std::optional<KnapsackChoice> BestOfAll(const Items& items, std::uint64_t budget) {
  std::vector<std::size_t> chosen(items.size());
  std::optional<KnapsackChoice> best;
  for (;;) {
    const KnapsackChoice total = Total(items, chosen);
    if (total.bytes <= budget && (!best || total.loss < best->loss)) best = total;
    std::size_t i = 0;
    while (i < items.size() && ++chosen[i] == items[i].size()) chosen[i++] = 0;
    if (i == items.size()) return best;
  }
}

TEST(KnapsackTest, AgreesWithTryingEverything) {
  constexpr std::uint32_t kSeed = 17;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  int impossible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Items items(1 + random() % 5);
    for (auto& choices : items) {
      choices.resize(1 + random() % 4);
      // Losses of eighths add up exactly in any order.
      for (auto& choice : choices) choice = {random() % 50, double(random() % 64) / 8};
    }
    const std::uint64_t budget = random() % 150;
    const auto chosen = ChooseWithin(items, budget);
    const auto best = BestOfAll(items, budget);
    ASSERT_EQ(chosen.has_value(), best.has_value());
    if (!chosen) {
      ++impossible;
      continue;
    }
    EXPECT_EQ(Total(items, *chosen).loss, best->loss);
    EXPECT_LE(Total(items, *chosen).bytes, budget);
  }
  EXPECT_GT(impossible, 5);
}

TEST(KnapsackTest, EqualLossesTakeTheFewestBytesThenTheFirst) {
  const Items items = {{{.bytes = 9, .loss = 1}, {.bytes = 4, .loss = 1}, {.bytes = 4, .loss = 1}}};
  EXPECT_EQ(ChooseWithin(items, 10), std::vector<std::size_t>{1});
  EXPECT_EQ(ChooseWithin(items, 3), std::nullopt);
  EXPECT_EQ(ChooseWithin({}, 0), std::vector<std::size_t>{});
}

TEST(KnapsackTest, ManyItemsStayWithinTheBudgetAndNearTheBest) {
  constexpr std::uint32_t kSeed = 23;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  Items items(200);
  std::uint64_t smallest = 0, largest = 0;
  for (auto& choices : items) {
    std::uint64_t bytes = 1'000'000 + random() % 1'000'000;
    largest += bytes;
    for (double loss = 0; loss < 4; loss += 1, bytes /= 2) {
      choices.push_back({bytes, loss * (1 + double(random() % 1000) / 1000)});
    }
    smallest += choices.back().bytes;
  }
  const std::uint64_t budget = smallest + (largest - smallest) / 3;
  const auto chosen = ChooseWithin(items, budget);
  ASSERT_TRUE(chosen);
  const KnapsackChoice total = Total(items, *chosen);
  EXPECT_LE(total.bytes, budget);
  EXPECT_GT(total.bytes, budget - budget / 50);  // What is allowed is used.
  // Exactly the smallest fits, and nothing less.
  EXPECT_EQ(Total(items, *ChooseWithin(items, smallest)).bytes, smallest);
  EXPECT_EQ(ChooseWithin(items, smallest - 1), std::nullopt);
}

}  // namespace
}  // namespace kvasir::eval
