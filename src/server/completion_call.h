// CompletionCall: what a request to /v1/completions or /v1/chat/completions asks for.
#ifndef KVASIR_SERVER_COMPLETION_CALL_H_
#define KVASIR_SERVER_COMPLETION_CALL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "constraints/constraint_compiler.h"
#include "constraints/verse_rules.h"
#include "sampling/sampling_options.h"
#include "server/field_reader.h"

namespace kvasir::server {

// Most of each that a request may ask for.
inline constexpr std::size_t kMaxPrompts = 1024;
inline constexpr std::uint64_t kMaxN = 128;
inline constexpr std::uint64_t kMaxChoicesOfCall = 2048;  // Prompts × n.
inline constexpr std::size_t kMaxStops = 16;
inline constexpr std::uint64_t kMaxTopLogprobs = 20;
inline constexpr std::size_t kMaxSaltBytes = 256;

// A prompt as text or as the ids of its tokens.
struct PromptInput {
  std::string text;
  std::optional<std::vector<base::TokenId>> ids = {};
};

enum class Role { kSystem, kUser, kAssistant };

struct ChatMessage {
  Role role = Role::kUser;
  std::string content;
};

// A poem of a fixed form, or an acrostic.
struct VerseCall {
  std::string form;  // wujue, qijue, wulv, qilv, or acrostic
  std::optional<std::string> heads = {};
  std::uint64_t chars = 7;  // In a line of an acrostic: 5 or 7.
  constraints::VerseRequest rules = {};
};

// A value; types and ranges are checked, but nothing that needs a model.
struct CompletionCall {
  bool chat = false;
  std::string model;
  std::vector<PromptInput> prompts = {};         // /v1/completions: at least one.
  std::string answer_prefix = {};                // /v1/completions: what each answer begins with.
  std::vector<ChatMessage> messages = {};        // /v1/chat/completions: at least one.
  std::optional<std::uint64_t> max_tokens = {};  // Nothing: all that fits.
  std::uint64_t n = 1;
  sampling::SamplingOptions sampling = {};
  std::optional<std::uint64_t> seed = {};
  std::vector<std::string> stops = {};
  bool logprobs = false;
  std::size_t top_logprobs = 0;  // Alternatives of each token; only with logprobs.
  bool echo = false;
  bool stream = false;
  bool include_usage = false;
  std::optional<constraints::ConstraintSpec> constraint = {};  // This or verse, not both.
  std::optional<VerseCall> verse = {};
  std::string cache_salt = {};
  // Of a prompt of ids: so many at its end were generated before, under these settings.
  std::uint64_t continued = 0;
};

// Of the body's object. ApiError 400 naming the parameter, its value and what is allowed.
ApiResult<CompletionCall> ReadCompletionCall(const JsonValue& body, bool chat);

// temperature, top_p, top_k, min_p, repetition_penalty, the other penalties, logit_bias.
ApiResult<sampling::SamplingOptions> ReadSampling(const FieldReader& fields);

// prompt: a text, ids, or an array of either.
ApiResult<std::vector<PromptInput>> ReadPrompts(const FieldReader& fields);

// cache_salt; empty if it is not given.
ApiResult<std::string> ReadSalt(const FieldReader& fields);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_COMPLETION_CALL_H_
