#include "server/completion_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "server/constraint_call.h"
#include "server/parameter_table.h"

namespace kvasir::server {
namespace {

ApiError Fault(std::string_view name, std::string message, std::string code = "invalid_value") {
  return ApiError(400, std::move(message), std::string(name), std::move(code));
}

ApiResult<std::vector<base::TokenId>> IdsOf(const std::string& name, const JsonValue& array) {
  std::vector<base::TokenId> ids;
  ids.reserve(array.items.size());
  for (const JsonValue& item : array.items) {
    KV_TRY(const std::uint64_t id, WholeOf(fmt::format("{}[{}]", name, ids.size()), item,
                                           {0, std::numeric_limits<base::TokenId>::max()}));
    ids.push_back(static_cast<base::TokenId>(id));
  }
  return ids;
}

ApiResult<PromptInput> PromptOf(const std::string& name, const JsonValue& value) {
  if (value.is_string()) return PromptInput{value.text, {}};
  if (value.is_array() && !value.items.empty() && value.items[0].is_number()) {
    KV_TRY(auto ids, IdsOf(name, value));
    return PromptInput{{}, std::move(ids)};
  }
  return Fault(
      name,
      fmt::format("'{}' is {}: it must be a string or an array of token ids", name,
                  value.is_array() && value.items.empty() ? "an empty array" : KindName(value)),
      "invalid_type");
}

ApiResult<std::map<base::TokenId, float>> BiasesOf(const FieldReader& fields) {
  std::map<base::TokenId, float> biases;
  const JsonValue* value = fields.Find("logit_bias");
  if (value == nullptr) return biases;
  if (!value->is_object()) {
    return Fault("logit_bias",
                 fmt::format("'logit_bias' is {}: it must be an object of token ids and numbers",
                             KindName(*value)),
                 "invalid_type");
  }
  for (const auto& [key, bias] : value->members) {
    base::TokenId id = 0;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
    if (read.ec != std::errc() || read.ptr != key.data() + key.size()) {
      return Fault(
          "logit_bias",
          fmt::format("'logit_bias' has the name '{}': it must be a token id", key.substr(0, 64)));
    }
    constexpr double kMost = sampling::kMaxLogitBias;
    KV_TRY(const double number, NumberOf(fmt::format("logit_bias.{}", id), bias, {-kMost, kMost}));
    if (!biases.emplace(id, static_cast<float>(number)).second) {
      return Fault("logit_bias", fmt::format("'logit_bias' names the token {} twice", id));
    }
  }
  return biases;
}

// The text of a message: a string, or parts of type text.
ApiResult<std::string> ContentOf(const std::string& name, const JsonValue* value) {
  if (value == nullptr) return Fault(name, fmt::format("'{}' is missing", name));
  if (value->is_string()) return value->text;
  if (!value->is_array()) {
    return Fault(name,
                 fmt::format("'{}' is {}: it must be a string or an array of text parts", name,
                             KindName(*value)),
                 "invalid_type");
  }
  std::string text;
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", name, i);
    const JsonValue& part = value->items[i];
    if (!part.is_object()) {
      return Fault(place, fmt::format("'{}' is {}: it must be an object", place, KindName(part)),
                   "invalid_type");
    }
    const FieldReader fields(part, place + ".");
    KV_TRY(fields.Only({"type", "text"}));
    KV_TRY(const auto type, fields.Text("type"));
    KV_TRY(const auto part_text, fields.Text("text"));
    if (type != "text" || !part_text) {
      return Fault(place, fmt::format("'{}' must be {{\"type\": \"text\", \"text\": …}}: only text "
                                      "is supported",
                                      place));
    }
    text += *part_text;
  }
  return text;
}

ApiResult<ChatMessage> MessageOf(const std::string& name, const JsonValue& value) {
  if (!value.is_object()) {
    return Fault(name, fmt::format("'{}' is {}: it must be an object", name, KindName(value)),
                 "invalid_type");
  }
  const FieldReader fields(value, name + ".");
  // What clients send along with the answers they were given is taken if it holds nothing.
  KV_TRY(fields.Only({"role", "content", "name", "refusal", "audio", "tool_calls", "function_call",
                      "annotations"}));
  for (const char* empty : {"refusal", "audio", "tool_calls", "function_call"}) {
    if (fields.Find(empty) != nullptr) {
      return Fault(fields.Name(empty),
                   fmt::format("'{}' is not supported by this server", fields.Name(empty)),
                   "unsupported_parameter");
    }
  }
  KV_TRY(fields.Text("name"));
  KV_TRY(const auto role, fields.Text("role"));
  ChatMessage message;
  if (role == "system" || role == "developer") {
    message.role = Role::kSystem;
  } else if (role == "user") {
    message.role = Role::kUser;
  } else if (role == "assistant") {
    message.role = Role::kAssistant;
  } else {
    return Fault(fields.Name("role"),
                 fmt::format("'{}' is {}: it must be system, developer, user or assistant",
                             fields.Name("role"),
                             role ? fmt::format("'{}'", role->substr(0, 64)) : "missing"));
  }
  KV_TRY(message.content, ContentOf(fields.Name("content"), fields.Find("content")));
  return message;
}

ApiResult<std::vector<ChatMessage>> MessagesOf(const FieldReader& fields) {
  const JsonValue* value = fields.Find("messages");
  if (value == nullptr) return Fault("messages", "'messages' is missing", "missing_parameter");
  if (!value->is_array()) {
    return Fault("messages", fmt::format("'messages' is {}: it must be an array", KindName(*value)),
                 "invalid_type");
  }
  if (value->items.empty()) return Fault("messages", "'messages' is empty: one is needed");
  std::vector<ChatMessage> messages;
  for (const JsonValue& item : value->items) {
    KV_TRY(auto message, MessageOf(fmt::format("messages[{}]", messages.size()), item));
    messages.push_back(std::move(message));
  }
  return messages;
}

// completions: the number of alternatives; chat: a boolean, and top_logprobs beside it.
ApiResult<void> ReadLogprobs(const FieldReader& fields, CompletionCall& call) {
  if (!call.chat) {
    KV_TRY(const auto count, fields.Whole("logprobs", {0, kMaxTopLogprobs}));
    call.logprobs = count.has_value();
    call.top_logprobs = static_cast<std::size_t>(count.value_or(0));
    return BOOST_OUTCOME_V2_NAMESPACE::success();
  }
  KV_TRY(const auto wanted, fields.Bool("logprobs"));
  KV_TRY(const auto count, fields.Whole("top_logprobs", {0, kMaxTopLogprobs}));
  call.logprobs = wanted.value_or(false);
  call.top_logprobs = static_cast<std::size_t>(count.value_or(0));
  if (count && !call.logprobs) {
    return Fault("top_logprobs", "'top_logprobs' needs 'logprobs' to be true");
  }
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

ApiResult<void> ReadStream(const FieldReader& fields, CompletionCall& call) {
  KV_TRY(const auto stream, fields.Bool("stream"));
  call.stream = stream.value_or(false);
  const JsonValue* options = fields.Find("stream_options");
  if (options == nullptr) return BOOST_OUTCOME_V2_NAMESPACE::success();
  if (!options->is_object()) {
    return Fault("stream_options",
                 fmt::format("'stream_options' is {}: it must be an object", KindName(*options)),
                 "invalid_type");
  }
  if (!call.stream) {
    return Fault("stream_options", "'stream_options' needs 'stream' to be true");
  }
  const FieldReader inner(*options, "stream_options.");
  KV_TRY(inner.Only({"include_usage", "include_obfuscation"}));
  KV_TRY(const auto usage, inner.Bool("include_usage"));
  KV_TRY(inner.Bool("include_obfuscation"));
  call.include_usage = usage.value_or(false);
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

ApiResult<void> ReadMaxTokens(const FieldReader& fields, CompletionCall& call) {
  constexpr std::uint64_t kDefault = 16;  // OpenAI's, of completions.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  // A chat answers with something; a completion of 0 tokens scores its prompt.
  KV_TRY(call.max_tokens, fields.Whole("max_tokens", {call.chat ? 1u : 0u, kMost}));
  if (!call.chat) {
    call.max_tokens = call.max_tokens.value_or(kDefault);
    return BOOST_OUTCOME_V2_NAMESPACE::success();
  }
  KV_TRY(const auto newer, fields.Whole("max_completion_tokens", {1, kMost}));
  if (newer && call.max_tokens && newer != call.max_tokens) {
    return Fault("max_completion_tokens",
                 fmt::format("'max_completion_tokens' is {} and 'max_tokens' is {}: give one of "
                             "them",
                             *newer, *call.max_tokens));
  }
  if (newer) call.max_tokens = newer;
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

// OpenAI's seeds are signed; all 64 bits count.
ApiResult<std::optional<std::uint64_t>> SeedOf(const FieldReader& fields) {
  const JsonValue* value = fields.Find("seed");
  if (value == nullptr) return std::optional<std::uint64_t>();
  std::int64_t number = 0;
  const char* end = value->text.data() + value->text.size();
  if (value->is_number() && value->text.starts_with('-')) {
    const auto read = std::from_chars(value->text.data(), end, number);
    if (read.ec == std::errc() && read.ptr == end) {
      return std::optional(static_cast<std::uint64_t>(number));
    }
  }
  return fields.Whole("seed", {0, std::numeric_limits<std::uint64_t>::max()});
}

ApiResult<void> ReadModalities(const FieldReader& fields) {
  KV_TRY(const auto modalities, fields.Texts("modalities", 8));
  for (const std::string& modality : modalities) {
    if (modality == "text") continue;
    return Fault("modalities", fmt::format("'modalities' names '{}': only text is supported",
                                           modality.substr(0, 64)));
  }
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

ApiResult<void> ReadCounts(const FieldReader& fields, CompletionCall& call) {
  KV_TRY(const auto n, fields.Whole("n", {1, kMaxN}));
  call.n = n.value_or(1);
  const std::uint64_t prompts = std::max<std::uint64_t>(1, call.prompts.size());
  if (prompts * call.n > kMaxChoicesOfCall) {
    return Fault("n", fmt::format("{} prompts with 'n' of {} make {} choices: at most {} are "
                                  "allowed",
                                  prompts, call.n, prompts * call.n, kMaxChoicesOfCall));
  }
  KV_TRY(const auto best_of, fields.Whole("best_of", {1, kMaxN}));
  if (best_of && *best_of != call.n) {
    return Fault("best_of",
                 fmt::format("'best_of' is {} and 'n' is {}: they must be equal, since this server "
                             "does not rank choices",
                             *best_of, call.n));
  }
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

ApiResult<void> ReadContinued(const FieldReader& fields, CompletionCall& call) {
  KV_TRY(const auto continued, fields.Whole("continued", {0, 1 << 30}));
  call.continued = continued.value_or(0);
  if (call.continued == 0) return BOOST_OUTCOME_V2_NAMESPACE::success();
  if (call.prompts.size() == 1 && call.prompts[0].ids && call.n == 1 && !call.echo) {
    return BOOST_OUTCOME_V2_NAMESPACE::success();
  }
  return Fault("continued",
               "'continued' goes with one 'prompt' of token ids, without 'echo', for one choice");
}

}  // namespace

ApiResult<std::vector<PromptInput>> ReadPrompts(const FieldReader& fields) {
  const JsonValue* value = fields.Find("prompt");
  if (value == nullptr) return Fault("prompt", "'prompt' is missing", "missing_parameter");
  std::vector<PromptInput> prompts;
  const bool several = value->is_array() && !value->items.empty() && !value->items[0].is_number();
  if (!several) {
    KV_TRY(auto prompt, PromptOf("prompt", *value));
    prompts.push_back(std::move(prompt));
    return prompts;
  }
  if (value->items.size() > kMaxPrompts) {
    return Fault("prompt", fmt::format("'prompt' holds {} prompts: at most {} are allowed",
                                       value->items.size(), kMaxPrompts));
  }
  for (const JsonValue& item : value->items) {
    KV_TRY(auto prompt, PromptOf(fmt::format("prompt[{}]", prompts.size()), item));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

ApiResult<sampling::SamplingOptions> ReadSampling(const FieldReader& fields) {
  sampling::SamplingOptions options;
  KV_TRY(const auto temperature, fields.Number("temperature", {0, 2}));
  KV_TRY(const auto top_p, fields.Number("top_p", {0, 1, /*min_open=*/true}));
  KV_TRY(const auto top_k, fields.Whole("top_k", {0, std::numeric_limits<std::uint32_t>::max()}));
  KV_TRY(const auto min_p, fields.Number("min_p", {0, 1}));
  KV_TRY(const auto repetition, fields.Number("repetition_penalty", {0, 1000, true}));
  KV_TRY(const auto presence, fields.Number("presence_penalty", {-2, 2}));
  KV_TRY(const auto frequency, fields.Number("frequency_penalty", {-2, 2}));
  KV_TRY(options.logit_bias, BiasesOf(fields));
  options.temperature = static_cast<float>(temperature.value_or(1));
  options.top_p = static_cast<float>(top_p.value_or(1));
  // A p that is above 0 but too small for a float keeps only the best token.
  options.top_p = std::max(options.top_p, std::numeric_limits<float>::min());
  options.top_k = static_cast<std::uint32_t>(top_k.value_or(0));
  options.min_p = static_cast<float>(min_p.value_or(0));
  options.repeat_penalty =
      std::max(static_cast<float>(repetition.value_or(1)), std::numeric_limits<float>::min());
  options.repeat_last_n = sampling::SamplingOptions::kWholeHistory;
  options.presence_penalty = static_cast<float>(presence.value_or(0));
  options.frequency_penalty = static_cast<float>(frequency.value_or(0));
  return options;
}

ApiResult<std::string> ReadSalt(const FieldReader& fields) {
  KV_TRY(const auto salt, fields.Text("cache_salt"));
  if (salt && (salt->empty() || salt->size() > kMaxSaltBytes)) {
    return Fault("cache_salt", fmt::format("'cache_salt' has {} bytes: it must have 1 to {}",
                                           salt->size(), kMaxSaltBytes));
  }
  return salt.value_or("");
}

ApiResult<CompletionCall> ReadCompletionCall(const JsonValue& body, bool chat) {
  KV_TRY(CheckParameters(body, chat));
  const FieldReader fields(body);
  CompletionCall call;
  call.chat = chat;
  KV_TRY(auto model, fields.Text("model"));
  if (!model) return Fault("model", "'model' is missing", "missing_parameter");
  call.model = std::move(*model);
  if (chat) {
    KV_TRY(call.messages, MessagesOf(fields));
    KV_TRY(ReadModalities(fields));
  } else {
    KV_TRY(call.prompts, ReadPrompts(fields));
    KV_TRY(const auto echo, fields.Bool("echo"));
    call.echo = echo.value_or(false);
    KV_TRY(auto answer_prefix, fields.Text("answer_prefix"));
    call.answer_prefix = std::move(answer_prefix).value_or("");
  }
  KV_TRY(ReadCounts(fields, call));
  KV_TRY(ReadMaxTokens(fields, call));
  KV_TRY(call.sampling, ReadSampling(fields));
  KV_TRY(call.seed, SeedOf(fields));
  KV_TRY(call.stops, fields.Texts("stop", kMaxStops));
  KV_TRY(ReadLogprobs(fields, call));
  KV_TRY(ReadStream(fields, call));
  KV_TRY(ReadConstraint(fields, call));
  KV_TRY(call.cache_salt, ReadSalt(fields));
  KV_TRY(ReadContinued(fields, call));
  KV_TRY(fields.Text("user"));
  if (call.continued > 0 && !call.answer_prefix.empty()) {
    return Fault("answer_prefix", "'answer_prefix' does not go with 'continued'");
  }
  return call;
}

}  // namespace kvasir::server
