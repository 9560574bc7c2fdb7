#include "sampling/sampling_options.h"

#include <cmath>
#include <string_view>

namespace kvasir::sampling {

using base::ErrorCode;
using base::MakeError;

namespace {

base::Result<void> CheckCountPenalty(std::string_view name, float penalty) {
  if (std::fabs(penalty) <= kMaxCountPenalty) return base::Success();
  return MakeError(ErrorCode::kUsage, "{} penalty {} is not allowed: it must be -{} to {}", name,
                   penalty, kMaxCountPenalty, kMaxCountPenalty);
}

}  // namespace

base::Result<void> Validate(const SamplingOptions& options, std::size_t vocab_size) {
  // Written so that NaN fails every test.
  if (!(options.temperature >= 0.0f) || std::isinf(options.temperature)) {
    return MakeError(
        ErrorCode::kUsage,
        "temperature {} is not allowed: it must be 0 (greedy) or a finite number above 0",
        options.temperature);
  }
  if (options.top_k > vocab_size) {
    return MakeError(ErrorCode::kUsage,
                     "top-k {} is larger than the vocabulary: it must be 0 (off) to {}",
                     options.top_k, vocab_size);
  }
  if (!(options.top_p > 0.0f && options.top_p <= 1.0f)) {
    return MakeError(ErrorCode::kUsage,
                     "top-p {} is not allowed: it must be above 0 and at most 1 (off)",
                     options.top_p);
  }
  if (!(options.min_p >= 0.0f && options.min_p <= 1.0f)) {
    return MakeError(ErrorCode::kUsage, "min-p {} is not allowed: it must be 0 (off) to 1",
                     options.min_p);
  }
  if (!(options.repeat_penalty > 0.0f) || std::isinf(options.repeat_penalty)) {
    return MakeError(
        ErrorCode::kUsage,
        "repeat penalty {} is not allowed: it must be a finite number above 0 (1 = off)",
        options.repeat_penalty);
  }
  KV_TRY(CheckCountPenalty("presence", options.presence_penalty));
  KV_TRY(CheckCountPenalty("frequency", options.frequency_penalty));
  for (base::TokenId id : options.banned) {
    if (id >= vocab_size) {
      return MakeError(ErrorCode::kUsage,
                       "banned token id {} is outside the vocabulary of {} tokens", id, vocab_size);
    }
  }
  for (const auto& [id, bias] : options.logit_bias) {
    if (id >= vocab_size) {
      return MakeError(ErrorCode::kUsage,
                       "logit bias for token id {}: it is outside the vocabulary of {} tokens", id,
                       vocab_size);
    }
    if (!(std::fabs(bias) <= kMaxLogitBias)) {
      return MakeError(ErrorCode::kUsage,
                       "logit bias {} for token id {} is not allowed: it must be -{} to {}", bias,
                       id, kMaxLogitBias, kMaxLogitBias);
    }
  }
  return base::Success();
}

}  // namespace kvasir::sampling
