// The price of cache policies on a model and a text: bytes, quality and speed of each.
#ifndef KVASIR_EVAL_CACHE_COMPARE_H_
#define KVASIR_EVAL_CACHE_COMPARE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "eval/divergence.h"
#include "eval/policy_run.h"
#include "eval/sequence_logits.h"
#include "kvcache/cache_policy.h"
#include "model/model.h"

namespace kvasir::eval {

// Bytes that one sequence of this length holds under a policy, whole blocks, tails and all; the
// length may be beyond the model's context. kUsage as CacheGeometry has it.
base::Result<std::uint64_t> PolicyBytes(const model::ModelShape& shape,
                                        const kvcache::CachePolicy& policy,
                                        std::uint64_t block_tokens, std::uint64_t length);

struct PolicyPrice {
  // Held by one sequence of that length, divided by the length: the model's context, 128, 512.
  double bytes_per_token = 0;
  double bytes_per_token_128 = 0;
  double bytes_per_token_512 = 0;
  TextEvidence evidence;
  double perplexity_change = 0;   // Percent of the full cache's.
  double tokens_per_s_start = 0;  // Decoding, one sequence.
  double tokens_per_s_end = 0;
  OffEqualsOn check;
};

struct CacheComparison {
  TextEvidence full;
  std::vector<PolicyPrice> policies;  // As asked, in that order.
};

struct CacheCompareOptions {
  ArrangementOptions arrangement = {};
  std::uint64_t repetitions = 5;  // Of the timing, at least 1.
  double seconds = 30;            // No further repetition begins after so long.
};

// Everything of the table that docs/kvcache/compare.md explains. Checks and timings use the first
// context of the text. Errors as EvaluatePolicies has them.
base::Result<CacheComparison> ComparePolicies(const model::Model& model,
                                              std::span<const base::TokenId> tokens,
                                              std::span<const kvcache::CachePolicy> policies,
                                              const CacheCompareOptions& options,
                                              base::ThreadTeam& team);

// What `cache compare` shows when no policies are named: the full cache, each type, by channel,
// rotated, a window with sinks, the layers' inputs, nothing at all, a mix by layer and one by head.
// With latent attention only the full cache.
std::vector<std::string> DefaultPolicies(const model::ModelShape& shape);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_CACHE_COMPARE_H_
