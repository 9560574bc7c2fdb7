// What a step computed, read and held: the numbers behind "the cache saves work and costs memory".
#ifndef KVASIR_ENGINE_TRACE_H_
#define KVASIR_ENGINE_TRACE_H_

#include <cstdint>
#include <vector>

namespace kvasir::engine {

// Counted for one layer; every layer does the same, except that in the last one only positions
// whose logits are wanted attend. A row is the keys, or the values, of one position (all heads).
struct WorkCounts {
  std::uint64_t positions = 0;     // computed: embedding, projections, MLP
  std::uint64_t rows_read = 0;     // of K, and as many of V, by attention: t + 1 at position t
  std::uint64_t rows_written = 0;  // of K, and as many of V

  WorkCounts& operator+=(const WorkCounts& other) {
    positions += other.positions;
    rows_read += other.rows_read;
    rows_written += other.rows_written;
    return *this;
  }
  friend bool operator==(const WorkCounts&, const WorkCounts&) = default;
};

// The work of positions begin … end − 1 of one sequence.
inline WorkCounts WorkOf(std::uint64_t begin, std::uint64_t end) {
  return {end - begin, (begin + end + 1) * (end - begin) / 2, end - begin};
}

// The block table of one sequence.
struct SequenceTrace {
  std::uint64_t request = 0;          // index
  std::uint32_t choice = 0;           // choice_index
  bool stem = false;                  // Computed once for all choices of the request.
  std::uint64_t length = 0;           // Positions stored.
  std::vector<std::uint32_t> blocks;  // Position t lies in entry t / block_tokens.
};

struct StepTrace {
  std::uint64_t step = 0;       // from 1
  std::uint64_t sequences = 0;  // in the batch
  std::uint64_t tokens = 0;     // settled by the step
  WorkCounts work;              // done
  // What the same step is without a cache: all positions up to each token decided.
  WorkCounts work_without_cache;
  // Of K and V together, after the step; blocks shared by sequences counted once.
  std::uint64_t held_bytes = 0;
  std::vector<std::uint64_t> held_bytes_per_layer;  // [layers]
  std::uint64_t shared_bytes = 0;     // Of the bytes held, in blocks that several sequences use.
  std::uint64_t waste_bytes = 0;      // Of the bytes held, in slots without a position.
  std::uint64_t idle_bytes = 0;       // Besides: kept to be found, held by no sequence.
  std::vector<SequenceTrace> tables;  // Of all sequences held, after the step.
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_TRACE_H_
