// Clock: the time that deadlines and measurements go by, injected so that tests decide it.
#ifndef KVASIR_ENGINE_CLOCK_H_
#define KVASIR_ENGINE_CLOCK_H_

#include <cstdint>

namespace kvasir::engine {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Microseconds since a fixed moment of the clock's own; never falls.
  virtual std::uint64_t Now() const = 0;
  // The system's steady clock.
  static const Clock& Steady();
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_CLOCK_H_
