#include "sampling/sampler.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"
#include "base/philox.h"
#include "kernels/softmax.h"
#include "kernels/weight_sums.h"

namespace kvasir::sampling {
namespace {

using base::TokenId;
using base::TokenMask;

}  // namespace

base::Result<void> Sampler::Prepare(std::size_t vocab_size) {
  KV_CHECK(vocab_size > 0);
  if (scores_.size() == vocab_size) return base::Success();
  KV_TRY(Validate(options_, vocab_size));
  scores_.resize(vocab_size);
  cumulative_.resize((vocab_size + kernels::kWeightBlock - 1) / kernels::kWeightBlock);
  seen_ = TokenMask(vocab_size);
  counts_.assign(vocab_size, 0);
  return base::Success();
}

base::Result<void> Sampler::Adjust(std::span<const float> logits, std::span<const TokenId> history,
                                   std::size_t prompt_tokens, const TokenMask* mask) {
  KV_CHECK(prompt_tokens <= history.size());
  std::copy(logits.begin(), logits.end(), scores_.begin());
  KV_TRY(ApplyRepeatPenalty(options_, history, seen_, scores_));
  KV_TRY(ApplyCountPenalties(options_, history.subspan(prompt_tokens), counts_, scores_));
  ApplyLogitBias(options_, scores_);
  ApplyMasks(options_, mask, scores_);
  return base::Success();
}

base::Result<DrawnToken> Sampler::Draw(std::span<const float> logits,
                                       std::span<const TokenId> history,
                                       std::uint32_t text_position, const TokenMask* mask,
                                       std::size_t prompt_tokens) {
  KV_TRY(Prepare(logits.size()));
  KV_TRY(const LogNormaliser model, Normalise(logits));
  KV_TRY(Adjust(logits, history, prompt_tokens, mask));
  const float max = kernels::MaxValue(scores_.data(), scores_.size());
  if (max == -std::numeric_limits<float>::infinity()) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "no token is allowed at position {}: bans and constraint exclude all {}",
                           text_position, logits.size());
  }
  DrawnToken drawn;
  if (options_.greedy()) {
    drawn.token =
        static_cast<TokenId>(std::find(scores_.begin(), scores_.end(), max) - scores_.begin());
    drawn.candidates = 1;
  } else {
    kernels::SoftmaxWeights(scores_.data(), scores_.size(), max, options_.temperature,
                            scores_.data());
    if (CandidateFilter::Needed(options_)) {
      filter_.Apply(scores_, options_);
      drawn.token = filter_.ids()[DrawIndex(filter_.weights(), text_position, &drawn.candidates)];
    } else {
      drawn.token = static_cast<TokenId>(DrawIndex(scores_, text_position, &drawn.candidates));
    }
  }
  drawn.logprob = model.LogProb(logits[drawn.token]);
  return drawn;
}

std::size_t Sampler::DrawIndex(std::span<const float> weights, std::uint32_t text_position,
                               std::size_t* positive) {
  const std::size_t blocks = (weights.size() + kernels::kWeightBlock - 1) / kernels::kWeightBlock;
  *positive = kernels::CumulativeWeights(weights.data(), weights.size(), cumulative_.data());
  constexpr std::uint32_t kFirstAttempt = 0;
  const std::array<std::uint32_t, 4> words =
      base::Philox4x32(seed_, {choice_index_, text_position,
                               static_cast<std::uint32_t>(DrawPurpose::kToken), kFirstAttempt});
  const double goal = base::UniformDouble(words[0], words[1]) * cumulative_[blocks - 1];
  // The cumulative sums do not fall, so the block is found by halving. u · total may be rounded up
  // to total: then the last block that adds anything counts.
  const auto begin = cumulative_.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(blocks);
  auto block = std::upper_bound(begin, end, goal);
  if (block == end) block = std::lower_bound(begin, end, cumulative_[blocks - 1]);
  const std::size_t first = static_cast<std::size_t>(block - begin) * kernels::kWeightBlock;
  double sum = block == begin ? 0.0 : *(block - 1);
  std::size_t drawn = weights.size();
  // A chain within the block may round to less than the block's own sum: its last weight counts.
  for (std::size_t i = first; i < std::min(weights.size(), first + kernels::kWeightBlock); ++i) {
    if (!(weights[i] > 0.0f)) continue;
    drawn = i;
    sum += static_cast<double>(weights[i]);
    if (sum > goal) break;
  }
  KV_CHECK(drawn < weights.size());
  return drawn;
}

}  // namespace kvasir::sampling
