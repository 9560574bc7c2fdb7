// SamplingOptions: everything a person can ask of the choice of a token.
#ifndef KVASIR_SAMPLING_SAMPLING_OPTIONS_H_
#define KVASIR_SAMPLING_SAMPLING_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace kvasir::sampling {

// Temperatures below the smallest normal float are greedy: the limit of ever smaller ones.
inline constexpr float kGreedyBelow = std::numeric_limits<float>::min();

// Largest allowed size of a logit bias, as OpenAI-shaped clients know it.
inline constexpr float kMaxLogitBias = 100.0f;

// Largest allowed size of a presence or frequency penalty, likewise.
inline constexpr float kMaxCountPenalty = 2.0f;

// A value type; what each does, and in which order, is stated in logit_filters.h.
struct SamplingOptions {
  float temperature = 0.8f;     // 0 (or −0) = greedy
  std::uint32_t top_k = 0;      // 0 = off, else 1 … vocabulary size
  float top_p = 1.0f;           // (0, 1]; 1 = off
  float min_p = 0.0f;           // [0, 1]; 0 = off
  float repeat_penalty = 1.0f;  // > 0; 1 = off, above 1 makes repeats rarer
  // How many of the last tokens of the history (prompt and continuation) the penalty looks at: 0 =
  // none, so the penalty is off; kWholeHistory = all of them.
  std::uint32_t repeat_last_n = 64;
  // Of tokens generated already, never of the prompt's: once each, and as often as they occur.
  float presence_penalty = 0.0f;           // −2 … 2; 0 = off, above 0 makes repeats rarer
  float frequency_penalty = 0.0f;          // likewise
  std::vector<base::TokenId> banned = {};  // never drawn
  std::map<base::TokenId, float> logit_bias = {};  // added to the logit; −100 … 100

  static constexpr std::uint32_t kWholeHistory = std::numeric_limits<std::uint32_t>::max();

  bool greedy() const { return temperature < kGreedyBelow; }
};

// kUsage, naming the value and what is allowed, for the first option that is not. Thread-safe.
base::Result<void> Validate(const SamplingOptions& options, std::size_t vocab_size);

}  // namespace kvasir::sampling

#endif  // KVASIR_SAMPLING_SAMPLING_OPTIONS_H_
