// What is asked of the engine, and what it answers.
#ifndef KVASIR_ENGINE_REQUEST_H_
#define KVASIR_ENGINE_REQUEST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "constraints/constraint.h"
#include "model/model.h"
#include "sampling/log_probs.h"
#include "sampling/sampling_options.h"

namespace kvasir::engine {

using base::TokenId;

inline constexpr std::uint64_t kMaxChoices = 65536;

// What happens to a text that outgrows the model's context.
enum class Overflow {
  kStop,  // It ends there.
  kRoll,  // It goes on: what it forgets is a function of its length alone (WindowStart).
};

// The first token that the token at index `length` is predicted from. Up to `context` tokens: the
// first of all. Beyond, the text is cut at multiples of half a context, as few of them as leave at
// most a context: so half a context to a whole one is seen, and positions are counted from the cut.
std::uint64_t WindowStart(std::uint64_t length, std::uint64_t context);

// One prompt and how to continue it. A value; its continuations are a function of the model, of
// these fields, and of nothing else.
struct GenerateRequest {
  std::vector<TokenId> prompt = {};  // At least one token; at most the model's context, or kRoll.
  // Of the prompt, so many tokens at its end were generated for the rest of it before, under these
  // settings: the continuation is what would have followed them then. Only of one choice.
  std::size_t continued = 0;
  Overflow overflow = Overflow::kStop;
  std::uint64_t max_tokens = 64;  // 0: an empty continuation.
  sampling::SamplingOptions sampling = {};
  std::uint64_t seed = 0;
  // Continuations choice_index = first_choice … first_choice + choices − 1, each with draws of its
  // own; so any of them can be had again alone.
  std::uint32_t first_choice = 0;
  std::uint64_t choices = 1;             // 1 … kMaxChoices
  std::vector<std::string> stops = {};   // A text ends before any of these.
  std::vector<TokenId> end_tokens = {};  // Drawing one ends the text.
  bool named_end_tokens = false;         // A person named them: drawn whatever their type.
  std::size_t top_logprobs = 0;          // Alternatives reported for each token.
  bool prompt_logprobs = false;          // Report the prompt's own tokens too.
  std::shared_ptr<const constraints::Matcher> constraint = nullptr;  // At its start, or null.
};

// kUsage naming the value and what is allowed.
base::Result<void> CheckRequest(const GenerateRequest& request, const model::ModelShape& shape);

// Most tokens that prompt and continuation may come to. Requires a checked request.
std::uint64_t LongestText(const GenerateRequest& request, const model::ModelShape& shape);

// What the cache holds of a text, given whole, when its next token is to be drawn.
inline std::span<const TokenId> CachedPart(std::span<const TokenId> text, std::uint64_t context) {
  const std::size_t start = WindowStart(text.size(), context);
  return text.subspan(start, text.size() - 1 - start);
}

// Most positions of it that the cache holds: the last token is drawn, but never computed.
inline std::uint64_t MostPositions(const GenerateRequest& request, const model::ModelShape& shape) {
  return std::min(LongestText(request, shape) - 1, shape.context);
}

enum class FinishReason {
  kStop,        // A stop string or an end token.
  kLength,      // max_tokens, or the end of the model's context.
  kConstraint,  // The constraint is complete: nothing may follow.
  kCancelled,   // Whoever asked, asked to stop.
  kDeadline,    // The request's time was over.
};
inline constexpr std::size_t kFinishReasons = 5;
// "stop", "length", "constraint", "cancelled", "deadline"
std::string_view FinishReasonName(FinishReason reason);

struct GeneratedToken {
  TokenId id = 0;
  double logprob = 0;          // nats; the model's own, before temperature and filters
  std::size_t candidates = 1;  // Tokens that could have been drawn; 1 for a forced one.
  std::vector<sampling::TokenLogProb> top = {};  // [top_logprobs], most probable first
};

struct ChoiceResult {
  std::uint32_t index = 0;  // choice_index
  std::string text;         // Valid UTF-8, without prompt, stop string and end token.
  // All tokens generated: those of a stop string and an end token too.
  std::vector<GeneratedToken> tokens;
  FinishReason finish = FinishReason::kLength;
};

struct Usage {
  std::uint64_t prompt_tokens = 0;      // Of each prompt once, however many choices.
  std::uint64_t completion_tokens = 0;  // Of all choices.
  std::uint64_t cached_tokens = 0;      // Prompt tokens found in the cache instead of computed.
};

struct RequestResult {
  std::vector<ChoiceResult> choices;  // By index.
  // With prompt_logprobs: of each prompt token after the first, given those before it. Empty where
  // nothing was computed, since no token could follow.
  std::vector<GeneratedToken> prompt = {};
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_REQUEST_H_
