#include "sampling/logit_filters.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "base/check.h"

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

}  // namespace

base::Result<void> ApplyRepeatPenalty(const SamplingOptions& options,
                                      std::span<const TokenId> history, TokenMask& seen,
                                      std::span<float> scores) {
  if (options.repeat_penalty == 1.0f) return base::Success();
  const std::size_t count = std::min<std::size_t>(history.size(), options.repeat_last_n);
  const std::span<const TokenId> last = history.last(count);
  for (TokenId id : last) {
    if (id < scores.size()) continue;
    return base::MakeError(base::ErrorCode::kUsage,
                           "token id {} in the history is outside the vocabulary of {} tokens", id,
                           scores.size());
  }
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
  if (ids_.size() < weights.size()) {
    ids_.resize(weights.size());
    weights_.resize(weights.size());
    keys_.resize(weights.size());
    offsets_.resize(kBuckets + 1);
  }
  count_ = 0;
  for (std::size_t id = 0; id < weights.size(); ++id) {
    ids_[count_] = static_cast<TokenId>(id);
    weights_[count_] = weights[id];
    count_ += weights[id] > 0.0f ? 1 : 0;
  }
  KV_CHECK(count_ > 0);
  if (options.top_k != 0 && options.top_k < count_) KeepFrom(KeyOfRank(options.top_k - 1));
  if (options.top_p < 1.0f) {
    double mass = 0;
    for (std::size_t i = 0; i < count_; ++i) mass += static_cast<double>(weights_[i]);
    KeepFrom(KeyOfMass(static_cast<double>(options.top_p) * mass));
  }
  if (options.min_p > 0.0f) {
    const float largest =
        *std::max_element(weights_.begin(), weights_.begin() + static_cast<std::ptrdiff_t>(count_));
    KeepWeights(static_cast<double>(options.min_p) * static_cast<double>(largest));
  }
}

void CandidateFilter::FillBuckets() {
  std::fill(offsets_.begin(), offsets_.end(), 0);
  for (std::size_t i = 0; i < count_; ++i) ++offsets_[BucketOf(weights_[i]) + 1];
  for (std::size_t b = 0; b < kBuckets; ++b) offsets_[b + 1] += offsets_[b];
  // Filled from the back, so that offsets_[b + 1] moves from the end of bucket b to its begin; the
  // shift below puts every begin in its place again.
  for (std::size_t i = count_; i-- > 0;) {
    keys_[--offsets_[BucketOf(weights_[i]) + 1]] = RankKey(weights_[i], ids_[i]);
  }
  std::copy(offsets_.begin() + 1, offsets_.end(), offsets_.begin());
  offsets_[kBuckets] = static_cast<std::uint32_t>(count_);
}

std::span<std::uint64_t> CandidateFilter::SortedBucket(std::size_t bucket) {
  const std::span<std::uint64_t> keys =
      std::span(keys_).subspan(offsets_[bucket], offsets_[bucket + 1] - offsets_[bucket]);
  std::sort(keys.begin(), keys.end(), std::greater<>());
  return keys;
}

std::uint64_t CandidateFilter::KeyOfRank(std::size_t rank) {
  FillBuckets();
  const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), rank);
  const std::size_t bucket = static_cast<std::size_t>(after - offsets_.begin()) - 1;
  return SortedBucket(bucket)[rank - offsets_[bucket]];
}

std::uint64_t CandidateFilter::KeyOfMass(double mass) {
  FillBuckets();
  double sum = 0;
  std::uint64_t last = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (std::uint64_t key : SortedBucket(bucket)) {
      sum += static_cast<double>(WeightOfKey(key));
      if (sum >= mass) return key;
      last = key;
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

void CandidateFilter::KeepWeights(double threshold) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const bool keep = static_cast<double>(weights_[i]) >= threshold;
    ids_[kept] = ids_[i];
    weights_[kept] = weights_[i];
    kept += keep ? 1 : 0;
  }
  count_ = kept;
}

}  // namespace kvasir::sampling
