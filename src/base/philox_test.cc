#include "base/philox.h"

#include <gtest/gtest.h>

namespace kvasir::base {
namespace {

// The known answers published with Random123 (kat_vectors, philox 4x32 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox4x32(0, {0, 0, 0, 0}),
            (PhiloxCounter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(Philox4x32(~0ull, {~0u, ~0u, ~0u, ~0u}),
            (PhiloxCounter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(
      Philox4x32(0x299f31d0'a4093822ull, {0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}),
      (PhiloxCounter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Philox, UniformDoubleIsHalfOpen) {
  EXPECT_EQ(UniformDouble(0, 0), 0.0);
  EXPECT_LT(UniformDouble(~0u, ~0u), 1.0);
  EXPECT_EQ(UniformDouble(0x80000000u, 0), 0.5);
}

}  // namespace
}  // namespace kvasir::base
