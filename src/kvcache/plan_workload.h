// What every plan of a cache needs: sums beyond 64 bits that are noticed, requests that make sense,
// how often and how long they fit.
#ifndef KVASIR_KVCACHE_PLAN_WORKLOAD_H_
#define KVASIR_KVCACHE_PLAN_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "base/result.h"
#include "kvcache/cache_plan.h"

namespace kvasir::kvcache {

// A number that remembers whether it went beyond 64 bits on the way.
class Amount {
 public:
  Amount(std::uint64_t value) : value_(value) {}  // NOLINT: numbers mix with amounts in formulas.
  std::optional<std::uint64_t> value() const { return value_; }

  friend Amount operator+(Amount a, Amount b) {
    return a.value_ && b.value_ ? Amount(base::CheckedAdd(*a.value_, *b.value_))
                                : Amount(std::nullopt);
  }
  friend Amount operator*(Amount a, Amount b) {
    return a.value_ && b.value_ ? Amount(base::CheckedMul(*a.value_, *b.value_))
                                : Amount(std::nullopt);
  }
  Amount& operator+=(Amount other) { return *this = *this + other; }

 private:
  explicit Amount(std::optional<std::uint64_t> value) : value_(value) {}
  std::optional<std::uint64_t> value_;
};

constexpr std::uint64_t CeilDiv(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// kUsage for a workload without requests, or with numbers that are not allowed. window: the one
// that frees the blocks of a shared prefix, or 0.
base::Result<void> CheckWorkload(const PlanWorkload& workload, std::uint64_t window);

// What a workload takes: the shared prefix, held once, and all the rest.
struct WorkloadBytes {
  Amount shared = 0;
  Amount own = 0;
};
using WorkloadFormula = std::function<WorkloadBytes(const PlanWorkload&)>;

// How often the workload fits, and how long its requests may become; nothing if it takes more than
// 2^64 bytes.
std::optional<CacheFit> FitWorkload(const PlanWorkload& workload, std::uint64_t memory_bytes,
                                    const WorkloadFormula& bytes);

// kUsage naming all factors of a product beyond 64 bits. formula: of one token.
base::Error WorkloadTooLarge(std::string_view formula, const PlanWorkload& workload);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_PLAN_WORKLOAD_H_
