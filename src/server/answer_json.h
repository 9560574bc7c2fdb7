// The JSON of answers, whole and in parts, as OpenAI's API writes it.
#ifndef KVASIR_SERVER_ANSWER_JSON_H_
#define KVASIR_SERVER_ANSWER_JSON_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "engine/request.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::server {

// What all parts of an answer say.
struct AnswerHead {
  bool chat = false;
  bool logprobs = false;
  bool top_logprobs = false;  // Alternatives were asked for, not only the tokens' own.
  bool include_usage = false;
  std::string id = {};
  std::uint64_t created = 0;  // Seconds since 1970.
  std::string model = {};
  std::string fingerprint = {};
};

// A token of an answer, or of an echoed prompt, whose first token has no log-probability.
struct AnswerToken {
  engine::GeneratedToken token;
  bool scored = true;
  std::size_t offset = 0;  // Characters of the text before it.
};

struct AnswerChoice {
  std::size_t index = 0;
  std::string text;
  std::vector<AnswerToken> tokens;  // Only with logprobs.
  std::string_view finish_reason;   // Empty: none yet.
};

// "stop" or "length": OpenAI's word for it.
std::string_view OpenAiFinishReason(engine::FinishReason reason);

// How a token is shown: its text, or its piece where that is no text by itself.
std::string ShownToken(const tokenizer::Vocabulary& vocabulary, base::TokenId id);

// Characters that begin in these bytes.
std::size_t CountCharacters(std::string_view bytes);

// Writes the parts of one answer. Borrows the vocabulary. Single-threaded.
class AnswerJson {
 public:
  AnswerJson(AnswerHead head, const tokenizer::Vocabulary& vocabulary);

  const AnswerHead& head() const { return head_; }
  // The whole document.
  std::string Whole(std::span<const AnswerChoice> choices, const engine::Usage& usage) const;
  // Appends one event of a stream, "data: {…}\n\n". `first` of a chat's choice names the role.
  void AppendPart(std::string& out, const AnswerChoice& choice, bool first) const;
  // The event that ends a stream of include_usage.
  std::string UsagePart(const engine::Usage& usage) const;

 private:
  std::string prefix_;  // data: {"id":…,…,"choices": of a part
  AnswerHead head_;
  const tokenizer::Vocabulary& vocabulary_;
};

// One event of a stream.
std::string ServerSentEvent(std::string_view data);
inline constexpr std::string_view kLastEvent = "data: [DONE]\n\n";

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_ANSWER_JSON_H_
