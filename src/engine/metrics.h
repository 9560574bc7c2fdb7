// Metrics: what a scheduler has done and holds, for those who watch it.
#ifndef KVASIR_ENGINE_METRICS_H_
#define KVASIR_ENGINE_METRICS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "engine/histogram.h"
#include "engine/request.h"
#include "kvcache/block_pool.h"
#include "kvcache/block_store.h"

namespace kvasir::engine {

// Of requests that wait, not started yet.
struct QueueLoad {
  std::uint64_t requests = 0;
  std::uint64_t prompt_tokens = 0;
};

// A snapshot.
struct Metrics {
  // Now:
  QueueLoad waiting;
  std::uint64_t requests = 0;     // Accepted and not ended, waiting ones too.
  std::uint64_t running = 0;      // Sequences in the batch.
  std::uint64_t preempted = 0;    // Sequences that gave their blocks up and wait to go on.
  std::uint64_t clients = 0;      // Keys with a request here.
  kvcache::BlockPoolStats cache;  // Live, shared, idle (cached and free) and free blocks.
  std::optional<kvcache::BlockStoreStats> store;  // Null: there is none.
  // Since the start:
  std::uint64_t accepted = 0;                               // Requests.
  std::uint64_t refused = 0;                                // For a full queue.
  std::uint64_t failed = 0;                                 // Ended with an Error.
  std::array<std::uint64_t, kFinishReasons> finished = {};  // Choices, by FinishReason.
  std::uint64_t prompt_tokens = 0;                          // Of requests started.
  std::uint64_t cached_tokens = 0;    // Of these, found in the cache instead of computed.
  std::uint64_t restored_tokens = 0;  // Positions taken from the store.
  std::uint64_t generated_tokens = 0;
  std::uint64_t computed_positions = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t steps = 0;
  Histogram step_us;         // Duration of a step.
  Histogram first_token_us;  // From the request to its first token.
  Histogram inter_token_us;  // Between steps that gave a choice tokens.
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_METRICS_H_
