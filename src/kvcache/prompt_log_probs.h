// Log-probabilities of a prompt's tokens, as they are kept beside the blocks.
#ifndef KVASIR_KVCACHE_PROMPT_LOG_PROBS_H_
#define KVASIR_KVCACHE_PROMPT_LOG_PROBS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/token_id.h"

namespace kvasir::kvcache {

inline constexpr std::size_t kKeptAlternatives = 20;

struct KeptLogProb {
  base::TokenId id = 0;
  double logprob = 0;  // nats
  double prob = 0;     // 0 … 1
};

// Of the token at one position t, given the tokens before it: a function of tokens 0 … t, as the
// K and V of position t are. So it lives and dies with the block that holds t.
struct PromptLogProbs {
  double logprob = 0;                  // nats; of the token itself
  std::vector<KeptLogProb> best = {};  // Most probable first; at most kKeptAlternatives.

  std::uint64_t bytes() const { return sizeof(*this) + best.capacity() * sizeof(KeptLogProb); }
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_PROMPT_LOG_PROBS_H_
