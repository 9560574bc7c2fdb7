// What goes through the network at a time.
#ifndef KVASIR_TRAINING_MICRO_BATCH_H_
#define KVASIR_TRAINING_MICRO_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_team.h"
#include "base/token_id.h"

namespace kvasir::training {

using base::Member;
using base::TokenId;

// Sequences that go through the network together. Which ones do never changes a bit of the result:
// gradients are chains over tokens that one batch ends and the next carries on.
struct MicroBatch {
  std::span<const TokenId> text;        // Inputs at start + i, targets at start + i + 1.
  std::span<const std::size_t> starts;  // [sequences]
  std::size_t length = 0;               // Positions of each sequence, <= context.
  std::size_t first_sequence = 0;  // Index of the first in the step's global batch: dropout's key.
  std::size_t rows() const { return starts.size() * length; }
  TokenId Input(std::size_t row) const { return text[starts[row / length] + row % length]; }
  TokenId Target(std::size_t row) const { return text[starts[row / length] + row % length + 1]; }
};

// What makes a pass of training another function than the one that is evaluated.
struct Disturbance {
  float dropout = 0;       // Probability; 0: none.
  std::uint64_t seed = 0;  // Of dropout.
  std::uint32_t step = 0;
  float kv_error = 1;  // What errors of rounded keys and values are multiplied by.
};

// One pass over a micro-batch, as every piece of the network is told of it: by all members of a
// region, with the same arguments.
struct Pass {
  Member& member;
  const MicroBatch& batch;
  const Disturbance& disturbance;

  std::size_t rows() const { return batch.rows(); }
  base::IndexRange RowShare() const { return member.Share(batch.rows()); }
};

// Columns of a row matrix in runs of whole cache lines, so that members never share one.
inline base::IndexRange ColumnShare(const Member& member, std::size_t columns) {
  constexpr std::size_t kLine = 16;  // floats
  const base::IndexRange lines = member.Share((columns + kLine - 1) / kLine);
  const auto column = [&](std::size_t line) {
    return line * kLine < columns ? line * kLine : columns;
  };
  return {column(lines.begin), column(lines.end)};
}

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_MICRO_BATCH_H_
