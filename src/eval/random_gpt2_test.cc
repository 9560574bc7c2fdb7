#include "eval/random_gpt2.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace kvasir::eval {
namespace {

constexpr model::Gpt2Config kSmall = {
    .layers = 1, .heads = 1, .embedding = 8, .feed_forward = 8, .context = 8, .vocab = 9};

TEST(RandomGpt2Test, IsFixedByItsSeed) {
  const auto a = MakeRandomGpt2(kSmall, 1);
  const auto b = MakeRandomGpt2(kSmall, 1);
  const auto c = MakeRandomGpt2(kSmall, 2);
  ASSERT_TRUE(a && b && c);
  bool differs = false;
  for (const model::TensorSpec& spec : model::Gpt2Tensors(kSmall)) {
    EXPECT_EQ(a.value()->TensorValues(spec), b.value()->TensorValues(spec));
    differs |= a.value()->TensorValues(spec) != c.value()->TensorValues(spec);
  }
  EXPECT_TRUE(differs);
}

TEST(RandomGpt2Test, NoTensorIsConstantAndGainsAreNearOne) {
  const auto made = MakeRandomGpt2(kSmall, 1);
  ASSERT_TRUE(made);
  for (const model::TensorSpec& spec : model::Gpt2Tensors(kSmall)) {
    const auto values = made.value()->TensorValues(spec);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_LT(*low, *high) << spec.name;
    const float middle = spec.name.ends_with("norm.weight") ? 1.0f : 0.0f;
    for (const float value : values) EXPECT_LE(std::fabs(value - middle), 0.11f) << spec.name;
  }
}

TEST(RandomGpt2Test, RefusesShapesThatCannotBe) {
  model::Gpt2Config uneven = kSmall;
  uneven.heads = 3;
  EXPECT_EQ(MakeRandomGpt2(uneven, 1).error().code, base::ErrorCode::kUsage);
  model::Gpt2Config huge = kSmall;
  huge.heads = 1024;
  huge.embedding = 65536;
  huge.vocab = 1 << 24;
  EXPECT_EQ(MakeRandomGpt2(huge, 1).error().code, base::ErrorCode::kUsage);
}

}  // namespace
}  // namespace kvasir::eval
