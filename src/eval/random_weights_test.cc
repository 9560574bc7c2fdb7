#include "eval/random_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kvasir::eval {
namespace {

std::vector<float> Draw(const model::TensorSource& source, const model::TensorSpec& spec) {
  const auto values = source(spec);
  EXPECT_TRUE(values);
  return {values.value().begin(), values.value().end()};
}

TEST(RandomWeightsTest, IsFixedByItsSeedAndGoesOn) {
  const model::TensorSpec matrix = {"blk.0.ffn_up.weight", {6, 5}};
  const auto a = RandomWeights(1), b = RandomWeights(1), c = RandomWeights(2);
  const auto first = Draw(a, matrix);
  EXPECT_EQ(first.size(), 30u);
  EXPECT_EQ(first, Draw(b, matrix));
  EXPECT_NE(first, Draw(c, matrix));
  const auto second = Draw(a, matrix);
  EXPECT_NE(first, second);
  EXPECT_EQ(second, Draw(b, matrix));
}

TEST(RandomWeightsTest, KindsOfTensorsHaveTheirScales) {
  const auto source = RandomWeights(3);
  const auto deviation = [&](const model::TensorSpec& spec, float middle) {
    double sum = 0;
    const auto values = Draw(source, spec);
    for (const float value : values) sum += std::pow(double{value} - double{middle}, 2);
    return std::sqrt(sum / static_cast<double>(values.size()));
  };
  EXPECT_NEAR(deviation({"a.weight", {100, 100}}, 0), 0.05, 0.005);
  EXPECT_NEAR(deviation({"attn_k_b.weight", {10, 10, 100}}, 0), 0.05, 0.005);
  EXPECT_NEAR(deviation({"a_norm.weight", {10000}}, 1), 0.1 / std::sqrt(3.0), 0.005);
  EXPECT_NEAR(deviation({"a.bias", {10000}}, 0), 0.1 / std::sqrt(3.0), 0.005);
}

TEST(RandomWeightsTest, ARefusedConfigIsAWrongFlag) {
  EXPECT_TRUE(CheckRandomModel(base::Success(), std::uint64_t{1} << 32));
  const auto large = CheckRandomModel(base::Success(), (std::uint64_t{1} << 32) + 1);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, base::ErrorCode::kUsage);
  EXPECT_NE(large.error().message.find("4294967297"), std::string::npos);
  const auto refused =
      CheckRandomModel(base::MakeError(base::ErrorCode::kBadData, "block_count is {}", 0), 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
  EXPECT_EQ(refused.error().message, "block_count is 0");
}

}  // namespace
}  // namespace kvasir::eval
