#include "sampling/logit_filters.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "base/check.h"
#include "kernels/softmax.h"

namespace kvasir::sampling {
namespace {

using base::TokenId;
using base::TokenMask;

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

// Sorting keys: weight descending, then id ascending, is the key descending. Positive floats order
// as their bits do.
std::uint64_t RankKey(float weight, TokenId id) {
  return std::uint64_t{std::bit_cast<std::uint32_t>(weight)} << 32 |
         static_cast<std::uint32_t>(~id);
}

float WeightOfKey(std::uint64_t key) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(key >> 32));
}

// Buckets of descending weight: 64 to an octave, from 1 down 32 octaves; the last holds all that is
// smaller. A logarithmic cut keeps them small whatever the temperature.
constexpr std::size_t kBuckets = 32 * 64;
constexpr std::uint32_t kOneBits = 0x3f800000u;
constexpr int kBucketShift = 23 - 6;

std::size_t BucketOf(float weight) {
  const std::uint32_t bits = std::min(std::bit_cast<std::uint32_t>(weight), kOneBits);
  return std::min<std::size_t>((kOneBits - bits) >> kBucketShift, kBuckets - 1);
}

// The smallest positive weight of a bucket.
float LeastOfBucket(std::size_t bucket) {
  if (bucket == kBuckets - 1) return std::numeric_limits<float>::denorm_min();
  const auto below = static_cast<std::uint32_t>(bucket + 1) << kBucketShift;
  return std::bit_cast<float>(kOneBits - below + 1);
}

// One chain of additions, ascending.
double Sum(std::span<const float> weights) {
  double sum = 0;
  for (float weight : weights) sum += static_cast<double>(weight);
  return sum;
}

base::Result<void> CheckHistory(std::span<const TokenId> history, std::size_t vocab) {
  for (const TokenId id : history) {
    if (id < vocab) continue;
    return base::MakeError(base::ErrorCode::kUsage,
                           "token id {} in the history is outside the vocabulary of {} tokens", id,
                           vocab);
  }
  return base::Success();
}

}  // namespace

base::Result<void> ApplyRepeatPenalty(const SamplingOptions& options,
                                      std::span<const TokenId> history, TokenMask& seen,
                                      std::span<float> scores) {
  if (options.repeat_penalty == 1.0f) return base::Success();
  const std::size_t count = std::min<std::size_t>(history.size(), options.repeat_last_n);
  const std::span<const TokenId> last = history.last(count);
  KV_TRY(CheckHistory(last, scores.size()));
  for (TokenId id : last) {
    if (seen.Test(id)) continue;
    seen.Allow(id);
    // Dividing a negative logit would make the repeat more likely (Case C15).
    const float score = scores[id];
    const float penalised =
        score > 0.0f ? score / options.repeat_penalty : score * options.repeat_penalty;
    scores[id] = std::clamp(penalised, -kLargest, kLargest);
  }
  for (TokenId id : last) seen.Ban(id);
  return base::Success();
}

base::Result<void> ApplyCountPenalties(const SamplingOptions& options,
                                       std::span<const TokenId> generated,
                                       std::span<std::uint32_t> counts, std::span<float> scores) {
  if (options.presence_penalty == 0.0f && options.frequency_penalty == 0.0f) {
    return base::Success();
  }
  KV_CHECK(counts.size() == scores.size());
  KV_TRY(CheckHistory(generated, scores.size()));
  for (const TokenId id : generated) ++counts[id];
  for (const TokenId id : generated) {
    if (counts[id] == 0) continue;  // Seen to already.
    const float penalty =
        options.presence_penalty + options.frequency_penalty * static_cast<float>(counts[id]);
    scores[id] = std::clamp(scores[id] - penalty, -kLargest, kLargest);
    counts[id] = 0;
  }
  return base::Success();
}

void ApplyLogitBias(const SamplingOptions& options, std::span<float> scores) {
  for (const auto& [id, bias] : options.logit_bias) {
    KV_CHECK(id < scores.size());
    scores[id] += bias;
  }
}

void ApplyMasks(const SamplingOptions& options, const TokenMask* mask, std::span<float> scores) {
  if (mask != nullptr) {
    KV_CHECK(mask->size() == scores.size());
    const std::span<const std::uint64_t> words = mask->words();
    for (std::size_t w = 0; w < words.size(); ++w) {
      const std::size_t begin = w * TokenMask::kWordBits;
      const std::size_t end = std::min(begin + TokenMask::kWordBits, scores.size());
      if (words[w] == 0) {
        std::fill(scores.begin() + static_cast<std::ptrdiff_t>(begin),
                  scores.begin() + static_cast<std::ptrdiff_t>(end), kMasked);
        continue;
      }
      for (std::uint64_t banned = ~words[w]; banned != 0; banned &= banned - 1) {
        const std::size_t id = begin + static_cast<std::size_t>(std::countr_zero(banned));
        if (id >= end) break;
        scores[id] = kMasked;
      }
    }
  }
  for (TokenId id : options.banned) {
    KV_CHECK(id < scores.size());
    scores[id] = kMasked;
  }
}

void CandidateFilter::Apply(std::span<const float> weights, const SamplingOptions& options) {
  Resize(weights.size());
  const bool top_k = options.top_k != 0 && options.top_k < weights.size();
  const bool top_p = options.top_p < 1.0f;
  const double p = static_cast<double>(options.top_p);
  if (top_k) {
    CountBuckets(weights);
    Collect(weights, WeightBelowRank(options.top_k - 1));
    if (options.top_k < count_) KeepFrom(KeyOfRank(options.top_k - 1));
    if (top_p) KeepFrom(KeyOfMass(p * Sum(this->weights())));
  } else if (top_p) {
    const double mass = p * Sum(weights);
    CountBuckets(weights);
    Collect(weights, WeightBelowMass(mass));
    KeepFrom(KeyOfMass(mass));
  }
  // The largest weight always survives.
  const float least = options.min_p * kernels::MaxValue(weights.data(), weights.size());
  if (!top_k && !top_p) {
    Collect(weights, std::max(least, std::numeric_limits<float>::denorm_min()));
  } else if (least > 0.0f) {
    KeepWeights(least);
  }
}

void CandidateFilter::Resize(std::size_t vocab_size) {
  if (ids_.size() >= vocab_size) return;
  ids_.resize(vocab_size);
  weights_.resize(vocab_size);
  keys_.resize(vocab_size);
  offsets_.resize(kBuckets + 1);
}

void CandidateFilter::CountBuckets(std::span<const float> weights) {
  std::fill(offsets_.begin(), offsets_.end(), 0);
  for (float weight : weights) ++offsets_[BucketOf(weight) + 1];
}

float CandidateFilter::WeightBelowRank(std::size_t rank) const {
  std::size_t bucket = 0;
  for (std::size_t seen = offsets_[1]; seen <= rank && bucket + 1 < kBuckets; ++bucket) {
    seen += offsets_[bucket + 2];
  }
  return LeastOfBucket(bucket);
}

float CandidateFilter::WeightBelowMass(double mass) const {
  // Every weight counted as the least of its bucket: the true sum is reached no later. The margin
  // covers the rounding of either sum many times over.
  const double wanted = mass * (1 + 1e-9);
  double sum = 0;
  for (std::size_t bucket = 0; bucket + 1 < kBuckets; ++bucket) {
    const float least = LeastOfBucket(bucket);
    sum += static_cast<double>(offsets_[bucket + 1]) * static_cast<double>(least);
    if (sum >= wanted) return least;
  }
  return LeastOfBucket(kBuckets - 1);
}

void CandidateFilter::Collect(std::span<const float> weights, float least) {
  // Without branches: which weights pass is as good as random.
  std::size_t kept = 0;
  for (std::size_t id = 0; id < weights.size(); ++id) {
    ids_[kept] = static_cast<TokenId>(id);
    weights_[kept] = weights[id];
    kept += weights[id] >= least ? 1 : 0;
  }
  count_ = kept;
  KV_CHECK(count_ > 0);
}

void CandidateFilter::FillBuckets() {
  CountBuckets(weights());
  for (std::size_t b = 0; b < kBuckets; ++b) offsets_[b + 1] += offsets_[b];
  // Filled from the back, so that offsets_[b + 1] moves from the end of bucket b to its begin; the
  // copy below puts every begin in its place again.
  for (std::size_t i = count_; i-- > 0;) {
    keys_[--offsets_[BucketOf(weights_[i]) + 1]] = RankKey(weights_[i], ids_[i]);
  }
  std::copy(offsets_.begin() + 1, offsets_.end(), offsets_.begin());
  offsets_[kBuckets] = static_cast<std::uint32_t>(count_);
}

std::uint64_t CandidateFilter::KeyOfRank(std::size_t rank) {
  for (std::size_t i = 0; i < count_; ++i) keys_[i] = RankKey(weights_[i], ids_[i]);
  const auto nth = keys_.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(keys_.begin(), nth, keys_.begin() + static_cast<std::ptrdiff_t>(count_),
                   std::greater<>());
  return *nth;
}

std::uint64_t CandidateFilter::KeyOfMass(double mass) {
  FillBuckets();
  double sum = 0;
  std::uint64_t last = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    const auto begin = keys_.begin() + offsets_[bucket];
    const auto end = keys_.begin() + offsets_[bucket + 1];
    std::sort(begin, end, std::greater<>());
    for (auto key = begin; key != end; ++key) {
      sum += static_cast<double>(WeightOfKey(*key));
      if (sum >= mass) return *key;
      last = *key;
    }
  }
  return last;  // Rounding kept the sum just short of mass: everything stays.
}

void CandidateFilter::KeepFrom(std::uint64_t key) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const bool keep = RankKey(weights_[i], ids_[i]) >= key;
    ids_[kept] = ids_[i];
    weights_[kept] = weights_[i];
    kept += keep ? 1 : 0;
  }
  count_ = kept;
}

void CandidateFilter::KeepWeights(float least) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const bool keep = weights_[i] >= least;
    ids_[kept] = ids_[i];
    weights_[kept] = weights_[i];
    kept += keep ? 1 : 0;
  }
  count_ = kept;
}

}  // namespace kvasir::sampling
