// What it costs that the cache lies in blocks: against one block as long as the text.
#ifndef KVASIR_EVAL_PAGING_COST_H_
#define KVASIR_EVAL_PAGING_COST_H_

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "model/model.h"

namespace kvasir::eval {

struct PagingCostOptions {
  std::uint64_t tokens = 0;                 // Length of the text: 2 … context.
  std::vector<std::uint64_t> block_tokens;  // As CacheGeometry allows.
  std::uint64_t repetitions = 9;            // >= 1
};

struct PagingCost {
  std::uint64_t block_tokens = 0;  // Of the contiguous cache: the text's length, rounded up to 16.
  double ms_per_step = 0;
  // Median over the repetitions of time ÷ that of the contiguous cache, measured in turns.
  double ratio = 0;
  // Held but empty slots of texts of any length about this one, on average, as a share of what they
  // hold: (block_tokens − 1) / 2 slots a text.
  double waste = 0;
};

// Decodes the last positions of one text (at most 32) over caches of each block size and over a
// contiguous one, whose figures come first. Blocks lie in random order, as after long use. Time
// includes taking the blocks. Checked first: equal bits of the logits. kUsage for a length the
// context does not have or a block size that is not allowed; kNumeric if bits differ.
base::Result<std::vector<PagingCost>> MeasurePagingCost(const model::Model& model,
                                                        const PagingCostOptions& options,
                                                        base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_PAGING_COST_H_
