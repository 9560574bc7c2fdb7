#include "engine/histogram.h"

#include <gtest/gtest.h>

namespace kvasir::engine {
namespace {

TEST(HistogramTest, BoundsAreInclusiveAndCountsCumulative) {
  Histogram histogram;
  for (const std::uint64_t us : {0u, 100u, 101u, 250u, 251u, 100'000'000u, 100'000'001u}) {
    histogram.Add(us);
  }
  EXPECT_EQ(histogram.count(), 7u);
  EXPECT_EQ(histogram.sum_us(), 200'000'703u);
  EXPECT_EQ(histogram.CountUpTo(0), 2u);
  EXPECT_EQ(histogram.CountUpTo(1), 4u);
  EXPECT_EQ(histogram.CountUpTo(2), 5u);
  EXPECT_EQ(histogram.CountUpTo(Histogram::kBounds.size() - 2), 5u);
  EXPECT_EQ(histogram.CountUpTo(Histogram::kBounds.size() - 1), 6u);
}

TEST(HistogramTest, BoundsRise) {
  EXPECT_TRUE(std::is_sorted(Histogram::kBounds.begin(), Histogram::kBounds.end()));
}

}  // namespace
}  // namespace kvasir::engine
