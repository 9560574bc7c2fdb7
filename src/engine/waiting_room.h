// WaitingRoom: how many requests may wait.
#ifndef KVASIR_ENGINE_WAITING_ROOM_H_
#define KVASIR_ENGINE_WAITING_ROOM_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/result.h"
#include "engine/metrics.h"

namespace kvasir::engine {

struct WaitingLimits {
  std::uint64_t requests = 1024;
  std::uint64_t requests_per_client = 512;
  // Of the prompts. One request may always wait, however long its prompt is.
  std::uint64_t prompt_tokens = std::uint64_t{1} << 20;

  static constexpr WaitingLimits None() { return {~0ull, ~0ull, ~0ull}; }
};

// Counts requests from their acceptance to their start, and refuses those beyond the limits.
// Thread-safe.
class WaitingRoom {
 public:
  explicit WaitingRoom(const WaitingLimits& limits) : limits_(limits) {}

  // Takes a place; kExhausted naming the limit, which counts as refused.
  base::Result<void> Enter(const std::string& client, std::uint64_t prompt_tokens);
  // Whether Enter would refuse whatever the prompt is, which counts as refused too: before any work
  // is spent on it.
  base::Result<void> CheckOpen(const std::string& client);
  // Gives a place back. Requires that it was taken with the same arguments.
  void Leave(const std::string& client, std::uint64_t prompt_tokens);

  QueueLoad load() const;
  std::uint64_t refused() const;

 private:
  base::Result<void> Check(const std::string& client, std::uint64_t prompt_tokens) const;

  const WaitingLimits limits_;
  mutable std::mutex mutex_;
  QueueLoad load_;
  std::map<std::string, std::uint64_t> of_client_;  // Requests; none is 0.
  std::uint64_t refused_ = 0;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_WAITING_ROOM_H_
