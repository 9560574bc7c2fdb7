// Time per token at given lengths of the text, of several models side by side: what the cache of an
// attention variant costs.
#ifndef KVASIR_EVAL_ATTENTION_SPEED_H_
#define KVASIR_EVAL_ATTENTION_SPEED_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "model/model.h"

namespace kvasir::eval {

struct AttentionVariant {
  std::string name;
  const model::Model* model = nullptr;
};

struct AttentionSpeed {
  std::string name;
  std::uint64_t length = 0;  // Positions that the timed token sees, its own included.
  std::uint64_t cache_bytes_per_token = 0;  // All layers.
  std::uint64_t weight_bytes = 0;           // That a step reads.
  std::uint64_t cache_bytes = 0;            // That this step reads and writes.
  double us_per_token = 0;                  // Median of the repetitions;
  double us_best = 0;                       // the shortest: what others' work on the machine
                                            // disturbs least.
  double ratio = 0;  // Median of this variant's time over the first's, repetition by repetition.
};

// For every length, ascending, and every variant: one step of one token at that length, repeated,
// the variants in turn. Checked before timing: the step's logits have the bits of one prefill of
// the whole text. kUsage for a length of 0 or beyond a model's context; kNumeric if the check
// fails. Single-threaded but for the team.
base::Result<std::vector<AttentionSpeed>> MeasureAttention(
    std::span<const AttentionVariant> variants, std::vector<std::uint64_t> lengths,
    std::uint64_t repetitions, base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_ATTENTION_SPEED_H_
