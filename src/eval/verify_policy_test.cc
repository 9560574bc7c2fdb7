#include "eval/verify_policy.h"

#include <gtest/gtest.h>

#include "kvcache/policy_matrix.h"

namespace kvasir::eval {
namespace {

TEST(VerifyPolicyTest, EveryLegalFeatureComesUp) {
  for (const bool rotary : {false, true}) {
    const kvcache::PolicyShape shape = {4, 4, 32, rotary, false};
    RandomStream random(7, 0);
    kvcache::PolicyFeatureSet seen = 0;
    for (int i = 0; i < 500; ++i) {
      const kvcache::CachePolicy policy = DrawPolicy(shape, random);
      for (std::uint64_t layer = 0; layer < 4; ++layer) {
        for (const kvcache::HeadPolicy& head : policy.Layer(layer)) {
          seen |= kvcache::FeaturesOf(head);
        }
      }
    }
    const kvcache::PolicyFeatureSet all = (1u << kvcache::kPolicyFeatures) - 1;
    EXPECT_EQ(seen | kvcache::Only(kvcache::PolicyFeature::kSomeHeads), all);
  }
}

TEST(VerifyPolicyTest, ALatentModelHasOne) {
  RandomStream random(7, 0);
  EXPECT_TRUE(DrawPolicy({3, 0, 0, true, true}, random).IsFull());
}

}  // namespace
}  // namespace kvasir::eval
