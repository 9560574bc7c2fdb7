#include "training/windows.h"

#include <gtest/gtest.h>

#include <set>

namespace kvasir::training {
namespace {

// Case C105.
TEST(WindowOrder, ShortTexts) {
  for (std::size_t tokens : {0u, 1u, 4u}) {
    const auto result = WindowOrder::Make(tokens, 4, 1);
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message.find(std::to_string(tokens) + " tokens"), std::string::npos);
  }
  auto one = WindowOrder::Make(5, 4, 1).value();
  for (std::uint64_t n = 0; n < 20; ++n) EXPECT_EQ(one.Start(n), 0u);
  auto two = WindowOrder::Make(6, 4, 1).value();
  std::set<std::size_t> starts;
  for (std::uint64_t n = 0; n < 64; ++n) starts.insert(two.Start(n));
  EXPECT_EQ(starts, (std::set<std::size_t>{0, 1}));
}

// Case C151: whatever the length, windows of an epoch are disjoint, stay inside, and a run read
// from any point equals the unbroken one.
TEST(WindowOrder, EpochsAreDisjointAndAccessIsStateless) {
  for (std::size_t tokens : {33u, 64u, 65u, 66u, 97u, 1000u}) {
    auto order = WindowOrder::Make(tokens, 16, 9).value();
    std::vector<std::size_t> run;
    for (std::uint64_t n = 0; n < 300; ++n) run.push_back(order.Start(n));
    std::uint64_t at = 0;
    for (std::uint64_t epoch = 0; at + order.EpochWindows(epoch) <= run.size(); ++epoch) {
      std::set<std::size_t> seen;
      const std::size_t windows = order.EpochWindows(epoch);
      for (std::size_t i = 0; i < windows; ++i) {
        EXPECT_LE(run[at + i] + 16, tokens - 1);
        EXPECT_EQ(run[at + i] % 16, run[at] % 16);
        seen.insert(run[at + i]);
      }
      EXPECT_EQ(seen.size(), windows);
      at += windows;
    }
    for (std::uint64_t n : {299u, 3u, 150u, 0u, 77u}) EXPECT_EQ(order.Start(n), run[n]);
    auto fresh = WindowOrder::Make(tokens, 16, 9).value();
    EXPECT_EQ(fresh.Start(200), run[200]);
  }
}

// The first target and the last token are seen.
TEST(WindowOrder, EveryTargetIsSeen) {
  auto order = WindowOrder::Make(50, 8, 3).value();
  std::vector<int> seen(50);
  for (std::uint64_t n = 0; n < 6000; ++n) {
    const std::size_t start = order.Start(n);
    for (std::size_t i = 1; i <= 8; ++i) ++seen[start + i];
  }
  for (std::size_t t = 1; t < 50; ++t) EXPECT_GT(seen[t], 0) << t;
}

}  // namespace
}  // namespace kvasir::training
