#include "base/token_mask.h"

#include <gtest/gtest.h>

namespace kvasir::base {
namespace {

TEST(TokenMask, StartsEmptyAndSetAllAllowsExactlyTheVocabulary) {
  for (std::size_t size : {0, 1, 2, 63, 64, 65, 127, 128, 129, 257, 6915}) {
    TokenMask mask(size);
    EXPECT_EQ(mask.size(), size);
    EXPECT_EQ(mask.Count(), 0u) << size;
    mask.SetAll();
    EXPECT_EQ(mask.Count(), size) << size;
    for (TokenId id = 0; id < size; ++id) ASSERT_TRUE(mask.Test(id)) << size << " " << id;
    mask.ClearAll();
    EXPECT_EQ(mask.Count(), 0u) << size;
  }
}

TEST(TokenMask, AllowAndBanTouchOneToken) {
  TokenMask mask(130);
  for (TokenId id : {0u, 63u, 64u, 129u}) mask.Allow(id);
  EXPECT_EQ(mask.Count(), 4u);
  EXPECT_FALSE(mask.Test(62));
  EXPECT_FALSE(mask.Test(65));
  mask.Ban(64);
  mask.Ban(64);
  EXPECT_FALSE(mask.Test(64));
  EXPECT_TRUE(mask.Test(63));
  EXPECT_EQ(mask.Count(), 3u);
  EXPECT_EQ(mask.words()[0], 1ull | 1ull << 63);
}

TEST(TokenMask, OrAddsWhatTheOtherAllows) {
  TokenMask a(70), b(70);
  a.Allow(1);
  b.Allow(69);
  a.Or(b);
  TokenMask expected(70);
  expected.Allow(1);
  expected.Allow(69);
  EXPECT_EQ(a, expected);
}

TEST(TokenMask, AndKeepsWhatBothAllow) {
  TokenMask a(70), b(70);
  a.Allow(1);
  a.Allow(69);
  b.Allow(69);
  b.Allow(2);
  a.And(b);
  TokenMask expected(70);
  expected.Allow(69);
  EXPECT_EQ(a, expected);
}

TEST(TokenMaskDeathTest, IdsBeyondTheSizeAreCaught) {
  TokenMask mask(65);
  EXPECT_DEATH(mask.Allow(65), "check failed");
  EXPECT_DEATH((void)mask.Test(127), "check failed");
  EXPECT_DEATH(mask.And(TokenMask(64)), "check failed");
}

}  // namespace
}  // namespace kvasir::base
