// A cache policy for a model and a text under a byte budget.
#ifndef KVASIR_EVAL_CACHE_SEARCH_H_
#define KVASIR_EVAL_CACHE_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "eval/policy_search.h"
#include "eval/sequence_logits.h"
#include "kvcache/cache_policy.h"
#include "model/model.h"

namespace kvasir::eval {

// What the search chooses from for a layer or head: f32, f16, int8 and int4 per token, int4 keys by
// channel, int8 in half and in a quarter of the context with four sinks. Not what trades bytes for
// time (store=hidden, store=none), which would win every search for bytes.
std::vector<kvcache::HeadPolicy> SearchedSettings(const model::ModelShape& shape);

// Tokens of a text that the search looks at; the rest is for measuring what it found. Half of the
// text, but at most 2,048 tokens or 4 contexts, whichever is more.
std::size_t CalibrationTokens(const model::ModelShape& shape, std::size_t tokens);

// SearchPolicy over the model's layers and heads, divergence measured on these tokens. The budget
// is of one sequence of a full context, in blocks of a multiple of 32 positions. kUsage if nothing
// fits or the model's attention is latent; else errors as EvaluatePolicies has them.
base::Result<PolicySearchResult> SearchCachePolicy(const model::Model& model,
                                                   std::span<const base::TokenId> calibration,
                                                   std::uint64_t budget_bytes,
                                                   const ArrangementOptions& arrangement,
                                                   base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_CACHE_SEARCH_H_
