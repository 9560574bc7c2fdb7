// Small headers of base: checked arithmetic, aligned arrays, results, hashes, the fp state.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstdint>

#include "base/aligned.h"
#include "base/checked.h"
#include "base/fp_env.h"
#include "base/hash.h"
#include "base/result.h"

namespace kvasir::base {
namespace {

TEST(Checked, SeesOverflow) {
  EXPECT_EQ(CheckedProduct({std::uint64_t{1} << 62, 4}), std::nullopt);
  EXPECT_EQ(CheckedProduct({~0ull, 2}), std::nullopt);
  EXPECT_EQ(CheckedProduct({~0ull, ~0ull, 0}), 0u);
  EXPECT_EQ(CheckedProduct({3, 5, 7}), 105u);
  EXPECT_EQ(CheckedAdd(~0ull, 1), std::nullopt);
  EXPECT_EQ(CheckedRoundUp(33, 32), 64u);
  EXPECT_EQ(CheckedRoundUp(~0ull, 32), std::nullopt);
}

TEST(AlignedArray, IsAlignedAndZero) {
  for (std::size_t count : {1u, 3u, 16u, 1001u}) {
    AlignedArray<float> array(count);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % kAlignment, 0u);
    for (float value : array.span()) EXPECT_EQ(value, 0.0f);
  }
  EXPECT_EQ(AlignedArray<float>().size(), 0u);
}

Result<int> Half(int value) {
  if (value % 2 != 0) return MakeError(ErrorCode::kUsage, "{} is odd", value);
  return value / 2;
}

Result<int> Quarter(int value) {
  KV_TRY(auto half, Half(value));
  return Half(half);
}

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(6).error().message, "3 is odd");
  EXPECT_EQ(WithHint(MakeError(ErrorCode::kIo, "x"), "y").hint, "y");
}

TEST(Hash, DependsOnEveryByteAndTheSeed) {
  std::uint32_t data[4] = {1, 2, 3, 4};
  const std::uint64_t before = HashSpan64(std::span<const std::uint32_t>(data));
  data[3] ^= 1u << 31;
  EXPECT_NE(HashSpan64(std::span<const std::uint32_t>(data)), before);
  EXPECT_NE(HashBytes128(std::as_bytes(std::span(data))),
            HashBytes128(std::as_bytes(std::span(data)), 1));
}

TEST(FpEnv, WrongRoundingIsSeen) {
  ASSERT_TRUE(CheckFpEnv().has_value());
  std::fesetround(FE_UPWARD);
  EXPECT_FALSE(CheckFpEnv().has_value());
  SetContractFpEnv();
  EXPECT_TRUE(CheckFpEnv().has_value());
}

}  // namespace
}  // namespace kvasir::base
