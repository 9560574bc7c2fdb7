#include "server/answer_json.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "server/json_writer.h"

namespace kvasir::server {
namespace {

using sampling::TokenLogProb;
using tokenizer::Vocabulary;

void WriteHead(JsonWriter& json, const AnswerHead& head, std::string_view object) {
  json.Member("id", head.id).Member("object", object).Member("created", head.created);
  json.Member("model", head.model).Member("system_fingerprint", head.fingerprint);
}

void WriteUsage(JsonWriter& json, const engine::Usage& usage) {
  json.Key("usage").BeginObject();
  json.Member("prompt_tokens", usage.prompt_tokens);
  json.Member("completion_tokens", usage.completion_tokens);
  json.Member("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  json.Key("prompt_tokens_details").BeginObject();
  json.Member("cached_tokens", usage.cached_tokens).EndObject().EndObject();
}

// {"token","logprob","bytes"}, left open.
void OpenChatToken(JsonWriter& json, const Vocabulary& vocabulary, base::TokenId id,
                   double logprob) {
  json.BeginObject().Member("token", ShownToken(vocabulary, id)).Member("logprob", logprob);
  json.Key("bytes").BeginArray();
  for (const char c : vocabulary.Bytes(id)) json.Uint(static_cast<unsigned char>(c));
  json.EndArray();
}

void WriteChatLogprobs(JsonWriter& json, const Vocabulary& vocabulary,
                       std::span<const AnswerToken> tokens) {
  json.BeginObject().Key("content").BeginArray();
  for (const AnswerToken& token : tokens) {
    OpenChatToken(json, vocabulary, token.token.id, token.token.logprob);
    json.Key("top_logprobs").BeginArray();
    for (const TokenLogProb& other : token.token.top) {
      OpenChatToken(json, vocabulary, other.id, other.logprob);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().Key("refusal").Null().EndObject();
}

// An object by the tokens' texts, so of tokens that look alike the more probable one.
void WriteTopByText(JsonWriter& json, const Vocabulary& vocabulary, const AnswerToken& token) {
  std::vector<TokenLogProb> top = token.token.top;
  const base::TokenId own = token.token.id;
  if (std::none_of(top.begin(), top.end(), [&](const auto& other) { return other.id == own; })) {
    top.push_back({own, token.token.logprob, 0});
  }
  json.BeginObject();
  std::set<std::string> seen;
  for (const TokenLogProb& other : top) {
    const std::string shown = ShownToken(vocabulary, other.id);
    if (seen.insert(shown).second) json.Member(shown, other.logprob);
  }
  json.EndObject();
}

void WriteTextLogprobs(JsonWriter& json, const Vocabulary& vocabulary, bool with_top,
                       std::span<const AnswerToken> tokens) {
  json.BeginObject().Key("tokens").BeginArray();
  for (const AnswerToken& token : tokens) json.String(ShownToken(vocabulary, token.token.id));
  json.EndArray().Key("token_logprobs").BeginArray();
  for (const AnswerToken& token : tokens) {
    token.scored ? json.Double(token.token.logprob) : json.Null();
  }
  json.EndArray().Key("top_logprobs");
  if (with_top) {
    json.BeginArray();
    for (const AnswerToken& token : tokens) {
      if (token.scored) {
        WriteTopByText(json, vocabulary, token);
      } else {
        json.Null();
      }
    }
    json.EndArray();
  } else {
    json.Null();
  }
  json.Key("text_offset").BeginArray();
  for (const AnswerToken& token : tokens) json.Uint(token.offset);
  json.EndArray().EndObject();
}

void WriteLogprobs(JsonWriter& json, const Vocabulary& vocabulary, const AnswerHead& head,
                   const AnswerChoice& choice) {
  json.Key("logprobs");
  if (!head.logprobs) {
    json.Null();
  } else if (head.chat) {
    WriteChatLogprobs(json, vocabulary, choice.tokens);
  } else {
    WriteTextLogprobs(json, vocabulary, head.top_logprobs, choice.tokens);
  }
}

void WriteFinish(JsonWriter& json, const AnswerChoice& choice) {
  json.Key("finish_reason");
  choice.finish_reason.empty() ? json.Null() : json.String(choice.finish_reason);
}

}  // namespace

std::string_view OpenAiFinishReason(engine::FinishReason reason) {
  const bool stopped =
      reason == engine::FinishReason::kStop || reason == engine::FinishReason::kConstraint;
  return stopped ? "stop" : "length";
}

std::string ShownToken(const Vocabulary& vocabulary, base::TokenId id) {
  const std::string_view bytes = vocabulary.Bytes(id);
  if (bytes.empty() || base::FirstInvalidUtf8(bytes)) return vocabulary.piece(id);
  return std::string(bytes);
}

std::size_t CountCharacters(std::string_view bytes) {
  return static_cast<std::size_t>(std::count_if(bytes.begin(), bytes.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

AnswerJson::AnswerJson(AnswerHead head, const Vocabulary& vocabulary)
    : head_(std::move(head)), vocabulary_(vocabulary) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, head_, head_.chat ? "chat.completion.chunk" : "text_completion");
  prefix_ = "data: " + json.Take() + ",\"choices\":";
}

std::string AnswerJson::Whole(std::span<const AnswerChoice> choices,
                              const engine::Usage& usage) const {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, head_, head_.chat ? "chat.completion" : "text_completion");
  json.Key("choices").BeginArray();
  for (const AnswerChoice& choice : choices) {
    json.BeginObject().Member("index", choice.index);
    if (head_.chat) {
      json.Key("message").BeginObject().Member("role", "assistant").Member("content", choice.text);
      json.Key("refusal").Null().EndObject();
    } else {
      json.Member("text", choice.text);
    }
    WriteLogprobs(json, vocabulary_, head_, choice);
    WriteFinish(json, choice);
    json.EndObject();
  }
  json.EndArray();
  WriteUsage(json, usage);
  json.EndObject();
  return json.Take();
}

void AnswerJson::AppendPart(std::string& out, const AnswerChoice& choice, bool first) const {
  out += prefix_;
  JsonWriter json(out);
  json.BeginArray().BeginObject().Member("index", choice.index);
  if (head_.chat) {
    json.Key("delta").BeginObject();
    if (first) json.Member("role", "assistant");
    if (first || !choice.text.empty()) json.Member("content", choice.text);
    json.EndObject();
  } else {
    json.Member("text", choice.text);
  }
  if (head_.logprobs && choice.tokens.empty()) {
    json.Key("logprobs").Null();
  } else {
    WriteLogprobs(json, vocabulary_, head_, choice);
  }
  WriteFinish(json, choice);
  json.EndObject().EndArray();
  out += head_.include_usage ? ",\"usage\":null}\n\n" : "}\n\n";
}

std::string AnswerJson::UsagePart(const engine::Usage& usage) const {
  JsonWriter json;
  json.BeginObject();
  WriteUsage(json, usage);
  json.EndObject();
  return prefix_ + "[]," + json.Take().substr(1) + "\n\n";
}

std::string ServerSentEvent(std::string_view data) {
  KV_CHECK(data.find('\n') == std::string_view::npos);
  return "data: " + std::string(data) + "\n\n";
}

}  // namespace kvasir::server
