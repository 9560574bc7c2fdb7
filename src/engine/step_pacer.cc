#include "engine/step_pacer.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace kvasir::engine {
namespace {

// Until it is known what they cost: enough that a product of matrices begins to pay.
constexpr std::size_t kUnknownTokens = 16;
constexpr std::size_t kLeastTokens = 4;
constexpr double kWeight = 1.0 / 8;  // Of a new measurement,
constexpr double kMostOf = 4;        // which counts as so many times the mean at most.

void Mix(double& mean, double measured) {
  mean = mean == 0 ? measured : mean + kWeight * (std::min(measured, kMostOf * mean) - mean);
}

std::size_t Bits(std::size_t texts) {
  return std::min<std::size_t>(32, static_cast<std::size_t>(std::bit_width(texts)));
}

}  // namespace

StepPacer::StepPacer(const StepPace& pace, std::uint64_t step_tokens)
    : most_time_(pace.most_time),
      most_tokens_(static_cast<std::size_t>(
          pace.most_tokens == 0 ? step_tokens : std::min(pace.most_tokens, step_tokens))) {
  KV_CHECK(most_time_ == 0 || most_time_ >= 1);
}

double StepPacer::PlainTime(std::size_t texts) const {
  const std::size_t bits = Bits(texts);
  // More texts take longer, so what fewer took is a safe guess.
  for (std::size_t i = bits; i > 0; --i) {
    if (plain_us_[i] > 0) return plain_us_[i];
  }
  return 0;
}

std::size_t StepPacer::Budget(std::size_t texts) const {
  KV_CHECK(texts >= 1);
  const std::size_t most = std::max(most_tokens_, texts);
  if (most_time_ == 0) return most;
  const double plain = PlainTime(texts);
  std::size_t prompts = kUnknownTokens;
  if (plain > 0 && added_tokens_ > 0) {
    const double allowed = (most_time_ - 1) * plain * added_tokens_ / added_us_;
    prompts = static_cast<std::size_t>(std::clamp(std::min(allowed, 2 * added_tokens_),
                                                  static_cast<double>(kLeastTokens),
                                                  static_cast<double>(most)));
  }
  return std::min(most, texts + prompts);
}

void StepPacer::Took(std::size_t texts, std::size_t prompt_tokens, std::uint64_t microseconds) {
  const auto took = static_cast<double>(microseconds);
  if (texts == 0) return;
  if (prompt_tokens == 0) {
    Mix(plain_us_[Bits(texts)], std::max(took, 1.0));
    return;
  }
  const double plain = PlainTime(texts);
  if (plain == 0) return;
  Mix(added_us_, std::max(1.0, took - plain));
  Mix(added_tokens_, static_cast<double>(prompt_tokens));
}

}  // namespace kvasir::engine
