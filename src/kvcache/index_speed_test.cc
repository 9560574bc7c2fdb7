#include "kvcache/index_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir::kvcache {
namespace {

TEST(IndexSpeedTest, MeasuresEachPart) {
  for (const std::uint64_t block_tokens : {16u, 256u}) {
    const auto speed =
        MeasureIndexSpeed({.block_tokens = block_tokens, .prompt_tokens = 300, .prompts = 5});
    ASSERT_TRUE(speed) << speed.error().message;
    EXPECT_GT(speed.value().hash_ns, 0.0);
    EXPECT_GT(speed.value().find_ns, 0.0);
    EXPECT_GT(speed.value().insert_ns, 0.0);
    // A token costs microseconds at the very least to compute; this is a bound, not a measure.
    EXPECT_LT(speed.value().find_ns, 1e5);
    RecordProperty("find_ns", std::to_string(speed.value().find_ns));
    RecordProperty("insert_ns", std::to_string(speed.value().insert_ns));
    RecordProperty("hash_ns", std::to_string(speed.value().hash_ns));
  }
}

TEST(IndexSpeedTest, RefusesWhatCannotBeMeasured) {
  for (const IndexSpeedOptions& options :
       {IndexSpeedOptions{.block_tokens = 7}, IndexSpeedOptions{.prompt_tokens = 15},
        IndexSpeedOptions{.prompts = 0}, IndexSpeedOptions{.prompts = std::uint64_t{1} << 60}}) {
    const auto refused = MeasureIndexSpeed(options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace kvasir::kvcache
