#include "base/check.h"

#include <gtest/gtest.h>

namespace kvasir::base {
namespace {

TEST(CheckDeathTest, NamesTheExpressionAndItsPlace) {
  EXPECT_DEATH(KV_CHECK(1 + 1 == 3), "check_test\\.cc:[0-9]+: check failed: 1 \\+ 1 == 3");
}

TEST(CheckTest, PassesOnTruthAndEvaluatesOnce) {
  int evaluated = 0;
  KV_CHECK(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckTest, DebugChecksCostNothingInReleaseBuilds) {
  int evaluated = 0;
  KV_DCHECK(++evaluated == 1);
#ifdef NDEBUG
  EXPECT_EQ(evaluated, 0);
#else
  EXPECT_EQ(evaluated, 1);
#endif
}

}  // namespace
}  // namespace kvasir::base
