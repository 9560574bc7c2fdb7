#include "engine/clock.h"

#include <chrono>

namespace kvasir::engine {
namespace {

class SteadyClock : public Clock {
 public:
  std::uint64_t Now() const override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(since).count());
  }
};

}  // namespace

const Clock& Clock::Steady() {
  static const SteadyClock kClock;
  return kClock;
}

}  // namespace kvasir::engine
