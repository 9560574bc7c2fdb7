// How the time of a token grows with the text before it, with a cache and without; what the growth
// adds up to over a whole text.
#ifndef KVASIR_EVAL_CACHE_TIMING_H_
#define KVASIR_EVAL_CACHE_TIMING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "eval/polynomial_fit.h"
#include "model/model.h"

namespace kvasir::eval {

struct CacheTimingOptions {
  // Tokens of a text, ascending; each 1 … context.
  std::vector<std::uint64_t> lengths;
  std::vector<std::uint64_t> batches;  // Sequences at once, each >= 1.
  std::uint64_t repetitions = 9;       // Most pairs a cell; at least one is measured.
  // Longest time for the repetitions of a cell, and for all. What would take three times as long
  // even with the fewest (3, or all if there are fewer), or comes after the end, is measured with
  // the cache only.
  double cell_seconds = 2;
  double all_seconds = 90;
};

// The step that computes the last of `tokens` positions of every sequence and the logits there.
struct StepTime {
  std::uint64_t tokens = 0;
  double ms_with = 0;  // One position a sequence, all others cached.
  // All positions again; absent where that takes too long.
  std::optional<double> ms_without;
  std::optional<double> ratio;  // Median of without ÷ with, of pairs measured in turns.
};

// Generating whole texts of this length: the sum over their steps, interpolated between the
// measured ones.
struct TextTime {
  std::uint64_t tokens = 0;
  double ms_with = 0;
  std::optional<double> ms_without;
};

struct BatchTiming {
  std::uint64_t batch = 0;
  std::vector<StepTime> steps;  // [lengths]
  std::vector<TextTime> texts;  // [lengths]
  // Of at least three lengths; n in tokens, values in ms.
  std::optional<PolynomialFit> step_with;     // a + b·n: a step with the cache
  std::optional<PolynomialFit> text_without;  // a·n + b·n²: a text without it
  std::optional<PolynomialFit> text_cubic;    // a·n + b·n² + c·n³: the same, attention counted
};
inline constexpr int kStepPowers[] = {0, 1};
inline constexpr int kTextPowers[] = {1, 2};
inline constexpr int kCubicPowers[] = {1, 2, 3};

// Texts are random tokens. Checked first, for every cell: the logits of the first and the last
// sequence have the bits of a step without cache. kUsage for a length the context does not have;
// kNumeric if bits differ; kExhausted if there is no memory for the caches.
base::Result<std::vector<BatchTiming>> MeasureCacheTiming(const model::Model& model,
                                                          const CacheTimingOptions& options,
                                                          base::ThreadTeam& team);

// Texts and fits from steps; steps.tokens ascending. Up to the first length a step takes as long as
// there.
void SumUp(BatchTiming& timing);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_CACHE_TIMING_H_
