// A cache policy at work on one text: whether its bits are a function of the text alone, and how
// fast it decodes.
#ifndef KVASIR_EVAL_POLICY_RUN_H_
#define KVASIR_EVAL_POLICY_RUN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "kvcache/cache_policy.h"
#include "model/model.h"

namespace kvasir::eval {

// tokens: of one sequence, 1 … context; the longer, the more is seen.
//
// Off equals on: runs the text with the cache, in steps of 1, 3, 16 and 7 tokens in turns, and at
// up to eight places spread over it compares the logits with those of a step over all tokens up to
// there without a cache, bit by bit.
struct OffEqualsOn {
  std::uint64_t comparisons = 0;  // Rows of logits.
  std::uint64_t mismatches = 0;
};
base::Result<OffEqualsOn> CheckPolicy(const model::Model& model,
                                      std::span<const base::TokenId> tokens,
                                      const kvcache::CachePolicy& policy,
                                      std::uint64_t block_tokens, base::ThreadTeam& team);

// Median time of a step of one token over the first tokens, and over the last: of 16 each, or of
// half the text if it is shorter. Seconds.
struct DecodeTimes {
  double start = 0;
  double end = 0;
};
struct DecodeTimeOptions {
  std::uint64_t block_tokens = 16;
  std::uint64_t repetitions = 5;  // At least 1.
  double seconds = 30;            // No further repetition begins after so long.
};
// [policies]: in turns, so that a disturbance falls on all. Requires at least 2 tokens.
base::Result<std::vector<DecodeTimes>> TimePolicies(const model::Model& model,
                                                    std::span<const base::TokenId> tokens,
                                                    std::span<const kvcache::CachePolicy> policies,
                                                    const DecodeTimeOptions& options,
                                                    base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_POLICY_RUN_H_
