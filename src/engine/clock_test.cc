#include "engine/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace kvasir::engine {
namespace {

TEST(ClockTest, SteadyNeverFallsAndCountsMicroseconds) {
  const Clock& clock = Clock::Steady();
  const std::uint64_t before = clock.Now();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const std::uint64_t after = clock.Now();
  EXPECT_GE(after - before, 2000u);
  EXPECT_GE(clock.Now(), after);
}

}  // namespace
}  // namespace kvasir::engine
