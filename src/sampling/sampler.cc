#include "sampling/sampler.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"
#include "base/philox.h"
#include "kernels/softmax.h"

namespace kvasir::sampling {
namespace {

using base::TokenId;
using base::TokenMask;

constexpr std::size_t kBlock = 64;

}  // namespace

base::Result<void> Sampler::Prepare(std::size_t vocab_size) {
  KV_CHECK(vocab_size > 0);
  if (scores_.size() == vocab_size) return base::Success();
  KV_TRY(Validate(options_, vocab_size));
  scores_.resize(vocab_size);
  partial_.resize((vocab_size + kBlock - 1) / kBlock);
  seen_ = TokenMask(vocab_size);
  return base::Success();
}

base::Result<void> Sampler::Adjust(std::span<const float> logits, std::span<const TokenId> history,
                                   const TokenMask* mask) {
  std::copy(logits.begin(), logits.end(), scores_.begin());
  KV_TRY(ApplyRepeatPenalty(options_, history, seen_, scores_));
  ApplyLogitBias(options_, scores_);
  ApplyMasks(options_, mask, scores_);
  return base::Success();
}

base::Result<DrawnToken> Sampler::Draw(std::span<const float> logits,
                                       std::span<const TokenId> history,
                                       std::uint32_t text_position, const TokenMask* mask) {
  KV_TRY(Prepare(logits.size()));
  KV_TRY(const LogNormaliser model, Normalise(logits));
  KV_TRY(Adjust(logits, history, mask));
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
  // One chain of additions over all weights; its value after every block is kept, so that the walk
  // below starts next to its goal with the very numbers a walk from the start would have.
  double total = 0;
  std::size_t count = 0;
  const std::size_t blocks = (weights.size() + kBlock - 1) / kBlock;
  for (std::size_t b = 0; b < blocks; ++b) {
    for (float weight :
         weights.subspan(b * kBlock, std::min(kBlock, weights.size() - b * kBlock))) {
      total += static_cast<double>(weight);
      count += weight > 0.0f ? 1 : 0;
    }
    partial_[b] = total;
  }
  *positive = count;
  constexpr std::uint32_t kFirstAttempt = 0;
  const std::array<std::uint32_t, 4> words =
      base::Philox4x32(seed_, {choice_index_, text_position,
                               static_cast<std::uint32_t>(DrawPurpose::kToken), kFirstAttempt});
  const double goal = base::UniformDouble(words[0], words[1]) * total;
  std::size_t block = 0;
  while (block < blocks && partial_[block] <= goal) ++block;
  if (block == blocks) {
    // u · total was rounded up to total.
    std::size_t index = weights.size() - 1;
    while (!(weights[index] > 0.0f)) --index;
    return index;
  }
  double sum = block == 0 ? 0.0 : partial_[block - 1];
  std::size_t index = block * kBlock;
  while (sum + static_cast<double>(weights[index]) <= goal) {
    sum += static_cast<double>(weights[index]);
    ++index;
  }
  return index;
}

}  // namespace kvasir::sampling
