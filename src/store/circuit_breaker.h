// CircuitBreaker: leaves a store that fails alone for a while.
#ifndef KVASIR_STORE_CIRCUIT_BREAKER_H_
#define KVASIR_STORE_CIRCUIT_BREAKER_H_

#include <algorithm>
#include <chrono>
#include <mutex>

namespace kvasir::store {

// After a fault nothing is tried for kFirstPause; each further fault without a success between
// doubles the pause, up to kLongestPause. So a store that is down costs one time-out a minute, and
// one that comes back is used again within one. Thread-safe.
class CircuitBreaker {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kFirstPause{1000};
  static constexpr std::chrono::milliseconds kLongestPause{60000};

  // Whether an operation may be tried.
  bool Allows(Clock::time_point now) const {
    const std::lock_guard lock(mutex_);
    return now >= open_until_;
  }
  void OnSuccess() {
    const std::lock_guard lock(mutex_);
    pause_ = kFirstPause;
  }
  void OnFault(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    if (now < open_until_) return;  // Of an operation begun before: one fault, not two.
    open_until_ = now + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
  }

 private:
  mutable std::mutex mutex_;
  Clock::time_point open_until_{};
  std::chrono::milliseconds pause_ = kFirstPause;
};

}  // namespace kvasir::store

#endif  // KVASIR_STORE_CIRCUIT_BREAKER_H_
