// What cache policies change of a model's predictions on a text: all policies and the full cache
// side by side, so that no row of logits is kept.
#ifndef KVASIR_EVAL_POLICY_EVIDENCE_H_
#define KVASIR_EVAL_POLICY_EVIDENCE_H_

#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "eval/divergence.h"
#include "eval/sequence_logits.h"
#include "kvcache/cache_policy.h"
#include "model/model.h"

namespace kvasir::eval {

struct PolicyEvidence {
  TextEvidence full;                   // Of the full cache; its divergence is 0.
  std::vector<TextEvidence> policies;  // [policies]
};

// The perplexity of the text under each policy, and how far its predictions are from the full
// cache's. The text is cut as EvaluateText cuts it, without overlap, so `full` has its perplexity.
// Holds caches for all policies, and two steps of logits. Errors: kBadData for fewer than 2 tokens;
// kUsage for a block size or policy that the model does not have; kNumeric naming the position of a
// logit that is not finite. Thread-compatible.
base::Result<PolicyEvidence> EvaluatePolicies(const model::Model& model,
                                              std::span<const base::TokenId> tokens,
                                              std::span<const kvcache::CachePolicy> policies,
                                              const ArrangementOptions& arrangement,
                                              base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_POLICY_EVIDENCE_H_
