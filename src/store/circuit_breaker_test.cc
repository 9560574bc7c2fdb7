#include "store/circuit_breaker.h"

#include <gtest/gtest.h>

namespace kvasir::store {
namespace {

using Clock = CircuitBreaker::Clock;

TEST(CircuitBreakerTest, PausesDoubleUntilASuccess) {
  CircuitBreaker breaker;
  Clock::time_point now = Clock::now();
  EXPECT_TRUE(breaker.Allows(now));
  for (const int milliseconds : {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000}) {
    const std::chrono::milliseconds pause(milliseconds);
    breaker.OnFault(now);
    EXPECT_FALSE(breaker.Allows(now));
    EXPECT_FALSE(breaker.Allows(now + pause - std::chrono::milliseconds(1)));
    now += pause;
    EXPECT_TRUE(breaker.Allows(now));
  }
  breaker.OnSuccess();
  breaker.OnFault(now);
  EXPECT_TRUE(breaker.Allows(now + CircuitBreaker::kFirstPause));
}

TEST(CircuitBreakerTest, FaultsOfOneTimeAreOne) {
  CircuitBreaker breaker;
  const Clock::time_point now = Clock::now();
  for (int i = 0; i < 10; ++i) breaker.OnFault(now);
  EXPECT_TRUE(breaker.Allows(now + CircuitBreaker::kFirstPause));
}

}  // namespace
}  // namespace kvasir::store
