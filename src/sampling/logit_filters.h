// What happens to the logits before a token is drawn. THE ORDER, stated here and nowhere else:
//
//   1. The raw logits are checked: NaN or ±infinity is kNumeric, naming the token id.
//   2. Reported log-probabilities are taken: the model's own, before everything below.
//   3. Repetition penalty: every token among the last repeat_last_n of the history, once however
//      often it occurs: logit / penalty where logit > 0, else logit · penalty. Then presence and
//      frequency penalties: every token generated so far (not the prompt's), which occurs n times:
//      logit − (presence + frequency · n), in f32.
//   4. Logit bias, added.
//   5. Bans and the constraint's mask: −infinity. Nothing left is kUsage, "no token is allowed".
//   6. Temperature below kGreedyBelow: the largest score, ties to the lowest id, is the answer;
//      no filter could remove it and no number is drawn.
//   7. Weights e^((score − max) / temperature) in f32. A weight below 2^−126 is 0: never drawn.
//   8. Top-k: the k largest weights, ties to the lower id.
//   9. Top-p: of those, in descending weight, ties to the lower id, the smallest set whose summed
//      weight reaches p times the weight left by top-k (sequential: top-p sees top-k's survivors as
//      a distribution of their own).
//  10. Min-p: of those, the weights >= min_p times the largest (in f32).
//  11. The draw: u in [0, 1) from Philox4x32-10, key = seed, counter = (choice index, text
//  position,
//      purpose, attempt); the first token, in ascending id, whose cumulative weight exceeds u times
//      the total (the last positive one, should rounding leave none).
//
// Sums are f64; by ascending id, in 9's cumulative sum by descending weight.
#ifndef KVASIR_SAMPLING_LOGIT_FILTERS_H_
#define KVASIR_SAMPLING_LOGIT_FILTERS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "base/token_mask.h"
#include "sampling/sampling_options.h"

namespace kvasir::sampling {

// The first half of step 3, in place on scores [vocab]. seen must be an empty mask of that size and
// is empty again afterwards. kUsage for a history token outside the vocabulary. A result too large
// for f32 becomes the largest finite one, so that scores stay finite.
base::Result<void> ApplyRepeatPenalty(const SamplingOptions& options,
                                      std::span<const base::TokenId> history, base::TokenMask& seen,
                                      std::span<float> scores);

// The second half of step 3, in place on scores [vocab]. counts must hold as many zeros, and holds
// them again afterwards. Errors and limits as above.
base::Result<void> ApplyCountPenalties(const SamplingOptions& options,
                                       std::span<const base::TokenId> generated,
                                       std::span<std::uint32_t> counts, std::span<float> scores);

// Step 4, in place. Options must have passed Validate.
void ApplyLogitBias(const SamplingOptions& options, std::span<float> scores);

// Step 5, in place; mask may be null, else has the vocabulary's size.
void ApplyMasks(const SamplingOptions& options, const base::TokenMask* mask,
                std::span<float> scores);

// Steps 8 to 10. Keeps its buffers between calls; single-threaded. A histogram of the weights finds
// a coarse cut just below the wanted one in one pass, so that only what is near it or above is
// collected and ordered.
class CandidateFilter {
 public:
  // Whether the options ask for any of the three.
  static bool Needed(const SamplingOptions& options) {
    return options.top_k != 0 || options.top_p < 1.0f || options.min_p > 0.0f;
  }

  // weights [vocab]: each 0 … 1, at least one positive. At least one candidate is left.
  void Apply(std::span<const float> weights, const SamplingOptions& options);

  // What is left: positive weights, ascending ids. Valid until the next Apply.
  std::span<const base::TokenId> ids() const { return std::span(ids_).first(count_); }
  std::span<const float> weights() const { return std::span(weights_).first(count_); }

 private:
  void Resize(std::size_t vocab_size);
  // Sets offsets_[b + 1] to the number of weights in bucket b.
  void CountBuckets(std::span<const float> weights);
  // The coarse cuts: a weight that is <= the one of this rank, or with which the mass is reached.
  float WeightBelowRank(std::size_t rank) const;
  float WeightBelowMass(double mass) const;
  // Makes the candidates the weights >= least that are positive.
  void Collect(std::span<const float> weights, float least);

  // The exact cuts, on candidates.
  std::uint64_t KeyOfRank(std::size_t rank);  // 0 = the largest weight
  std::uint64_t KeyOfMass(double mass);       // where the descending sum reaches mass
  void FillBuckets();                         // keys_ by bucket, offsets_ where each begins
  void KeepFrom(std::uint64_t key);           // and what ranks before it
  void KeepWeights(float least);

  std::size_t count_ = 0;
  std::vector<base::TokenId> ids_;      // [vocab], the first count_ in use
  std::vector<float> weights_;          // [vocab], the first count_ in use
  std::vector<std::uint64_t> keys_;     // [vocab]
  std::vector<std::uint32_t> offsets_;  // [buckets + 1]
};

}  // namespace kvasir::sampling

#endif  // KVASIR_SAMPLING_LOGIT_FILTERS_H_
