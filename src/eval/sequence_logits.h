// The logits of every position of one sequence.
#ifndef KVASIR_EVAL_SEQUENCE_LOGITS_H_
#define KVASIR_EVAL_SEQUENCE_LOGITS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "kvcache/cache_policy.h"
#include "model/model.h"
#include "model/step_tap.h"

namespace kvasir::eval {

// How the work is arranged: never a matter of the result's bits, but for the policy, which may
// choose another function.
struct ArrangementOptions {
  std::uint64_t block_tokens = 16;
  std::uint64_t prefill_chunk = 0;  // Tokens a step; 0: as many as fit a step's buffers.
  bool kv_cache = true;             // Off: every step recomputes all tokens before its own.
  // Made for the model's Policy(); null: everything, in f32.
  std::optional<kvcache::CachePolicy> policy = std::nullopt;
};

// Rows of logits that one step may hold: about 16 MiB, at least one row.
std::size_t LogitRowsPerStep(const model::ModelShape& shape);

// Logits [tokens][vocab]. Errors: kUsage for no token, more than the context, an id outside the
// vocabulary or a block size that is not allowed; kNumeric naming the position of a row that is not
// finite. Thread-compatible.
base::Result<std::vector<float>> SequenceLogits(const model::Model& model,
                                                std::span<const base::TokenId> tokens,
                                                const ArrangementOptions& options,
                                                base::ThreadTeam& team);

// The same steps without their logits, each shown to the tap. The same Errors. Where the cache is
// off, positions are shown again by every step, with the same bits.
base::Result<void> TapSequence(const model::Model& model, std::span<const base::TokenId> tokens,
                               const ArrangementOptions& options, base::ThreadTeam& team,
                               model::StepTap& tap);

// kUsage for no token or more than the context.
base::Result<void> CheckLength(std::span<const base::TokenId> tokens, std::uint64_t context);

// kNumeric naming the position, if a logit of this row is not finite.
base::Result<void> CheckFinite(std::span<const float> row, std::uint64_t position);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_SEQUENCE_LOGITS_H_
