// What is asked of a model, and what it answers.
#ifndef KVASIR_REQUEST_H_
#define KVASIR_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/model.h"

namespace kvasir {

// The texts that may come out. What does not lead to one of them is ruled out before each draw.
struct Constraint {
  enum class Kind { kRegex, kJsonSchema, kGrammar, kChoices };
  Kind kind = Kind::kRegex;
  // An expression that the whole text matches; a JSON Schema (2020-12); a grammar (GBNF); or each
  // of the choices.
  std::vector<std::string> texts = {};
  bool assert_formats = false;  // Of a schema: enforce its "format", which is else a remark.
  bool compact_json = false;    // Of a schema: one spelling for each value, without blanks.

  static Constraint Regex(std::string expression) {
    return {.kind = Kind::kRegex, .texts = {std::move(expression)}};
  }
  static Constraint JsonSchema(std::string schema) {
    return {.kind = Kind::kJsonSchema, .texts = {std::move(schema)}};
  }
  static Constraint Grammar(std::string grammar) {
    return {.kind = Kind::kGrammar, .texts = {std::move(grammar)}};
  }
  static Constraint Choices(std::vector<std::string> texts) {
    return {.kind = Kind::kChoices, .texts = std::move(texts)};
  }
};

// What happens to a text that outgrows the model's context.
enum class Overflow {
  kStop,  // It ends there.
  kRoll,  // It goes on from the last half of the context and more.
};

// One prompt and how to continue it. The answer is a function of the model, of these fields, of the
// cache policy, and of nothing else.
struct Request {
  std::string prompt = {};
  std::vector<TokenId> prompt_tokens = {};  // If not empty: in place of prompt.
  std::uint64_t max_tokens = 64;
  Overflow overflow = Overflow::kStop;

  float temperature = 0.8f;              // 0: always the most probable token.
  std::uint32_t top_k = 0;               // 0: off.
  float top_p = 1.0f;                    // (0, 1]; 1: off.
  float min_p = 0.0f;                    // [0, 1]; 0: off.
  float repeat_penalty = 1.0f;           // Of the last 64 tokens; > 0; 1: off.
  float presence_penalty = 0.0f;         // −2 … 2, of what has been generated; 0: off.
  float frequency_penalty = 0.0f;        // Likewise.
  std::map<TokenId, float> biases = {};  // Added to logits; −100 … 100.

  std::optional<std::uint64_t> seed = {};  // None: a random one, told in the answer.
  std::uint64_t count = 1;                 // Continuations, each with draws of its own.
  std::uint64_t best_of = 1;  // So many are drawn for each, and the most probable is kept.

  std::vector<std::string> stops = {};    // The text ends before any of these.
  std::vector<std::string> bans = {};     // Tokens that hold one of these are never drawn.
  std::optional<TokenId> end_token = {};  // None: the model's own.
  bool ignore_end = false;                // Never draw an end token.
  std::optional<Constraint> constraint = {};

  std::size_t top_logprobs = 0;  // Alternatives told of each token.
};

enum class FinishReason {
  kStop,        // A stop string or an end token.
  kLength,      // max_tokens, or the end of the model's context.
  kConstraint,  // The constraint is complete: nothing may follow.
  kCancelled,   // The callback asked to stop.
};
// "stop", "length", "constraint", "cancelled"
KVASIR_API std::string_view FinishReasonName(FinishReason reason);

struct TokenProbability {
  TokenId id = 0;
  double logprob = 0;  // Natural logarithm; the model's own, before temperature and filters.
};

struct Token {
  TokenId id = 0;
  double logprob = 0;                      // As above.
  std::vector<TokenProbability> top = {};  // [top_logprobs], the most probable first.
};

// Told as tokens come.
struct TokenEvent {
  std::size_t request = 0;       // index
  std::size_t continuation = 0;  // index, below count · best_of
  const Token& token;            // Lives for the call.
  std::string_view text;         // What became certain with it: whole characters; may be empty.
};

struct Continuation {
  std::string text = {};           // Valid UTF-8, without prompt, stop string and end token.
  std::vector<Token> tokens = {};  // All that were generated.
  FinishReason finish = FinishReason::kLength;
};

struct Answer {
  std::uint64_t seed = 0;
  std::vector<Continuation> continuations = {};  // [count]
};

// What an answer cost; of requests that ran together, of all of them.
struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t cached_tokens = 0;  // Of the prompts', found in the cache instead of computed.
  std::uint64_t peak_cache_bytes = 0;
  double prefill_ms = 0;
  double decode_ms = 0;
};

}  // namespace kvasir

#endif  // KVASIR_REQUEST_H_
