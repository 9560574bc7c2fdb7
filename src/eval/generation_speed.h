// How fast a model runs: decoding, prefill, many sequences at once, with and without a cache. Each
// measurement first checks that what it is about to time gives the right bits.
#ifndef KVASIR_EVAL_GENERATION_SPEED_H_
#define KVASIR_EVAL_GENERATION_SPEED_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/thread_team.h"
#include "kvcache/cache_policy.h"
#include "model/model.h"

namespace kvasir::eval {

struct SpeedOptions {
  std::uint64_t tokens = 0;       // 1 … context; what they are is said at each measurement.
  std::uint64_t repetitions = 9;  // >= 1; medians are taken over them.
  // Of decoding, prefill and batches; made for the model's Policy(). Null: the full cache.
  std::optional<kvcache::CachePolicy> policy = std::nullopt;
};

// All measurements: kUsage for token counts beyond the context, kNumeric if the check before the
// timing fails. Single-threaded but for the team.

struct DecodeSpeed {
  double us_per_token = 0;           // One step and one draw (temperature 1, no filter).
  double us_per_token_forward = 0;   // The step alone.
  double us_per_token_sampling = 0;  // The draw alone.
  double us_per_token_start = 0;     // Steps at the first positions (at most 16).
  double us_per_token_end = 0;       // Steps at the last ones.
  double weight_bytes = 0;           // That a token must move,
  double kv_bytes = 0;  // and K/V on average over the positions; of a policy: what is held.
  double gb_per_s = 0;  // Of the step alone.
};
// Generates options.tokens tokens from one, each a step. Checked: the logits of every step are
// those of one prefill over the same tokens.
base::Result<DecodeSpeed> MeasureDecode(const model::Model& model, const SpeedOptions& options,
                                        base::ThreadTeam& team);

struct PrefillSpeed {
  double ms = 0;
  double tokens_per_s = 0;
  double gflop_per_s = 0;
};
// One step over options.tokens tokens, logits of the last. Checked: these are those of single
// steps.
base::Result<PrefillSpeed> MeasurePrefill(const model::Model& model, const SpeedOptions& options,
                                          base::ThreadTeam& team);

struct BatchSpeed {
  double tokens_per_s = 0;  // Over all sequences, steps alone, prompts not counted.
  double ms_per_step = 0;
};
// `sequences` at once: prompts of 16 tokens (fewer if the context is short), then options.tokens
// each. Checked: the last logits of each sequence are those it has alone.
base::Result<BatchSpeed> MeasureBatch(const model::Model& model, std::uint64_t sequences,
                                      const SpeedOptions& options, base::ThreadTeam& team);

struct CacheGain {
  double ms_on = 0;
  double ms_off = 0;
  double ratio = 0;  // Median of the repetitions' ratios, each of two runs one after the other.
  std::uint64_t positions_on = 0;
  std::uint64_t positions_off = 0;
};
// Generates options.tokens tokens from one, with the cache, and recomputing everything at each step
// but scoring the last position only. Checked: equal tokens, equal logits bits at each step.
base::Result<CacheGain> MeasureCacheGain(const model::Model& model, const SpeedOptions& options,
                                         base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_GENERATION_SPEED_H_
