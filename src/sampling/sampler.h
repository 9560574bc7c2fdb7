// Sampler: draws one token after another from logits, by the rules of logit_filters.h.
#ifndef KVASIR_SAMPLING_SAMPLER_H_
#define KVASIR_SAMPLING_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "base/token_mask.h"
#include "sampling/log_probs.h"
#include "sampling/logit_filters.h"
#include "sampling/sampling_options.h"

namespace kvasir::sampling {

// The third word of a draw's Philox counter (R7), so that two uses never share a number.
enum class DrawPurpose : std::uint32_t { kToken = 0 };

struct DrawnToken {
  base::TokenId token = 0;
  double logprob = 0;          // nats; the model's own, before penalty, temperature and filters
  std::size_t candidates = 0;  // tokens that could have been drawn; 1 when greedy
};

// Owns its scratch memory, so that after the first draw nothing is allocated; single-threaded. A
// draw is a function of options, seed, choice index and the arguments: no state is carried from one
// to the next, no neighbour in a batch matters, and any draw can be repeated.
class Sampler {
 public:
  // seed: 64 bits, all used. choice_index: which of several continuations of one prompt.
  Sampler(SamplingOptions options, std::uint64_t seed, std::uint32_t choice_index = 0)
      : options_(std::move(options)), seed_(seed), choice_index_(choice_index) {}

  // logits: [vocab], one row, without padding. history: prompt and continuation, read by penalties
  // only. text_position: the absolute position the token will take. mask: null, or [vocab] bits of
  // what a constraint allows. prompt_tokens: how many of the history's first were not generated.
  // Errors: kUsage for options this vocabulary does not fit, or when no token is allowed; kNumeric
  // for a logit that is not finite.
  base::Result<DrawnToken> Draw(std::span<const float> logits,
                                std::span<const base::TokenId> history, std::uint32_t text_position,
                                const base::TokenMask* mask = nullptr,
                                std::size_t prompt_tokens = 0);

  const SamplingOptions& options() const { return options_; }
  std::uint64_t seed() const { return seed_; }
  std::uint32_t choice_index() const { return choice_index_; }

 private:
  // Checks the options against this vocabulary and sizes the scratch, when the size is new.
  base::Result<void> Prepare(std::size_t vocab_size);
  // Steps 3 to 5 into scores_.
  base::Result<void> Adjust(std::span<const float> logits, std::span<const base::TokenId> history,
                            std::size_t prompt_tokens, const base::TokenMask* mask);
  // Step 11 over weights, by index; sets *positive to the number of weights above 0.
  std::size_t DrawIndex(std::span<const float> weights, std::uint32_t text_position,
                        std::size_t* positive);

  SamplingOptions options_;
  std::uint64_t seed_;
  std::uint32_t choice_index_;

  std::vector<float> scores_;          // [vocab]: adjusted logits, then weights
  std::vector<double> cumulative_;     // [ceil(vocab / 64)]: weight of all blocks up to each
  base::TokenMask seen_;               // [vocab], empty between calls
  std::vector<std::uint32_t> counts_;  // [vocab], zeros between calls
  CandidateFilter filter_;
};

}  // namespace kvasir::sampling

#endif  // KVASIR_SAMPLING_SAMPLER_H_
