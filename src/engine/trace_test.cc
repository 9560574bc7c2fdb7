#include "engine/trace.h"

#include <gtest/gtest.h>

namespace kvasir::engine {
namespace {

TEST(TraceTest, WorkIsTheSumOverPositions) {
  for (std::uint64_t begin = 0; begin < 12; ++begin) {
    for (std::uint64_t end = begin; end < 12; ++end) {
      WorkCounts expected;
      for (std::uint64_t t = begin; t < end; ++t) expected += {1, t + 1, 1};
      EXPECT_EQ(WorkOf(begin, end), expected) << begin << " " << end;
    }
  }
}

}  // namespace
}  // namespace kvasir::engine
