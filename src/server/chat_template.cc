#include "server/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "engine/prompt.h"

namespace kvasir::server {
namespace {

struct KnownTemplate {
  base::Hash128 name;  // Of its text, newlines as below.
  ChatFormat format;
};
// tests/server/chat_templates.json holds the texts; a nightly test compares what they write with
// what is written here.
constexpr KnownTemplate kKnown[] = {
    {{0x56191e205a440263, 0xf0a6a8278439fdb0}, ChatFormat::kChatMl},
    {{0xd5d943bd0bd9082f, 0xe580c2da83415028}, ChatFormat::kQwen2},
    {{0x5a33498785c53d45, 0x39df3fa40a20c760}, ChatFormat::kQwen3},
    {{0xcb7c5112dfc4a3b0, 0x97aac26c37e4a675}, ChatFormat::kLlama2},
    {{0xb97891b7adc1beb8, 0x8f20b9eda669ce10}, ChatFormat::kLlama3},
    {{0x9799ad6e2dea0594, 0x09facc0e4aa94318}, ChatFormat::kLlama3},
    {{0x1db34e9fc60441d8, 0x5ae4edc1a6c08aa6}, ChatFormat::kZephyr},
    {{0xf64ecff9c8ef587d, 0x87e1980108b40447}, ChatFormat::kDeepseek},
};

std::string_view RoleName(Role role) {
  return role == Role::kSystem ? "system" : role == Role::kUser ? "user" : "assistant";
}

// What Python's str.strip, and so Jinja's trim, takes for blank.
bool IsBlank(std::uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::string_view Strip(std::string_view text) {
  std::size_t begin = text.size();
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const base::Utf8Step step = base::DecodeUtf8(text.substr(at));
    if (step.status != base::Utf8Status::kOk || !IsBlank(step.code_point)) {
      begin = std::min(begin, at);
      end = at + step.bytes;
    }
    at += step.bytes;
  }
  return begin >= end ? std::string_view() : text.substr(begin, end - begin);
}

std::string_view StripNewlines(std::string_view text, bool left, bool right) {
  while (left && text.starts_with('\n')) text.remove_prefix(1);
  while (right && text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

// Collects parts, joining texts.
class Writer {
 public:
  explicit Writer(const tokenizer::Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  Writer& Text(std::string_view text) {
    if (text.empty()) return *this;
    if (parts_.empty() || parts_.back().token) parts_.push_back({});
    parts_.back().text += text;
    return *this;
  }
  Writer& Token(std::string_view piece) {
    parts_.push_back({std::string(piece), true});
    return *this;
  }
  // Where the vocabulary has them.
  Writer& Start() { return Special(vocabulary_.bos()); }
  Writer& End() { return Special(vocabulary_.eos()); }
  std::vector<ChatPart> Take() { return std::move(parts_); }

 private:
  Writer& Special(std::optional<base::TokenId> id) {
    return id ? Token(vocabulary_.piece(*id)) : *this;
  }
  const tokenizer::Vocabulary& vocabulary_;
  std::vector<ChatPart> parts_;
};

void ChatMlMessage(Writer& out, std::string_view role, std::string_view content) {
  out.Token("<|im_start|>").Text(role).Text("\n").Text(content).Token("<|im_end|>").Text("\n");
}

// An answer without the thoughts before it; after the last question with them.
std::string Qwen3Answer(std::string_view content, bool after_last_question, bool last) {
  constexpr std::string_view kOpen = "<think>";
  constexpr std::string_view kClose = "</think>";
  std::string_view answer = content;
  std::string_view thoughts;
  if (const std::size_t close = content.find(kClose); close != std::string_view::npos) {
    answer = StripNewlines(content.substr(content.rfind(kClose) + kClose.size()), true, false);
    thoughts = StripNewlines(content.substr(0, close), false, true);
    if (const std::size_t open = thoughts.rfind(kOpen); open != std::string_view::npos) {
      thoughts.remove_prefix(open + kOpen.size());
    }
    thoughts = StripNewlines(thoughts, true, false);
  }
  if (!after_last_question || (!last && thoughts.empty())) return std::string(answer);
  return "<think>\n" + std::string(StripNewlines(thoughts, true, true)) + "\n</think>\n\n" +
         std::string(StripNewlines(answer, true, false));
}

void Qwen3(Writer& out, std::span<const ChatMessage> messages) {
  std::size_t last_question = messages.size() - 1;
  for (std::size_t i = messages.size(); i-- > 0;) {
    const std::string& text = messages[i].content;
    if (messages[i].role != Role::kUser ||
        (text.starts_with("<tool_response>") && text.ends_with("</tool_response>"))) {
      continue;
    }
    last_question = i;
    break;
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ChatMlMessage(
        out, RoleName(messages[i].role),
        messages[i].role == Role::kAssistant
            ? Qwen3Answer(messages[i].content, i > last_question, i + 1 == messages.size())
            : messages[i].content);
  }
  out.Token("<|im_start|>").Text("assistant\n");
}

ApiResult<void> Llama2(Writer& out, std::span<const ChatMessage> messages) {
  std::string system;
  if (messages[0].role == Role::kSystem) {
    system = "<<SYS>>\n" + messages[0].content + "\n<</SYS>>\n\n";
    messages = messages.subspan(1);
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if ((messages[i].role == Role::kUser) != (i % 2 == 0)) {
      return ApiError(400,
                      "the model's template wants messages of user and assistant in turn, "
                      "after at most one of system",
                      "messages", "invalid_value");
    }
    const std::string content = (i == 0 ? system : "") + messages[i].content;
    if (messages[i].role == Role::kUser) {
      out.Start().Text("[INST] ").Text(Strip(content)).Text(" [/INST]");
    } else if (messages[i].role == Role::kAssistant) {
      out.Text(" ").Text(Strip(content)).Text(" ").End();
    }
  }
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

void Llama3(Writer& out, std::span<const ChatMessage> messages) {
  const auto header = [&](std::string_view role) {
    out.Token("<|start_header_id|>").Text(role).Token("<|end_header_id|>").Text("\n\n");
  };
  out.Start();
  for (const ChatMessage& message : messages) {
    header(RoleName(message.role));
    out.Text(Strip(message.content)).Token("<|eot_id|>");
  }
  header("assistant");
}

void Zephyr(Writer& out, std::span<const ChatMessage> messages) {
  for (const ChatMessage& message : messages) {
    out.Text("<|").Text(RoleName(message.role)).Text("|>\n").Text(message.content).End().Text("\n");
  }
  out.Text("<|assistant|>\n");
}

void Deepseek(Writer& out, std::span<const ChatMessage> messages) {
  out.Start();
  for (const ChatMessage& message : messages) {
    if (message.role == Role::kUser) out.Text("User: ").Text(message.content).Text("\n\n");
    if (message.role == Role::kSystem) out.Text(message.content).Text("\n\n");
    if (message.role == Role::kAssistant) out.Text("Assistant: ").Text(message.content).End();
  }
  out.Text("Assistant:");
}

void ChatMl(Writer& out, std::span<const ChatMessage> messages, bool default_system) {
  if (default_system && messages[0].role != Role::kSystem) {
    ChatMlMessage(out, "system", "You are a helpful assistant.");
  }
  for (const ChatMessage& message : messages) {
    ChatMlMessage(out, RoleName(message.role), message.content);
  }
  out.Token("<|im_start|>").Text("assistant\n");
}

// Templates name tokens that text cannot: control tokens first.
std::optional<base::TokenId> FindToken(const tokenizer::Vocabulary& vocabulary,
                                       std::string_view piece) {
  for (base::TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.piece(id) == piece && vocabulary.type(id) == tokenizer::TokenType::kControl) {
      return id;
    }
  }
  return vocabulary.FindPiece(piece);
}

}  // namespace

std::string_view ChatFormatName(ChatFormat format) {
  constexpr std::array<std::string_view, 8> kNames = {"plain",  "chatml", "qwen2",  "qwen3",
                                                      "llama2", "llama3", "zephyr", "deepseek"};
  return kNames[static_cast<std::size_t>(format)];
}

std::optional<ChatFormat> FindChatFormat(std::string_view chat_template) {
  if (Strip(chat_template).empty()) return ChatFormat::kPlain;
  std::string text;
  for (std::size_t i = 0; i < chat_template.size(); ++i) {
    const bool newline = chat_template.substr(i, 2) == "\\n";
    text += newline ? '\n' : chat_template[i];
    if (newline) ++i;
  }
  while (text.ends_with('\n')) text.pop_back();
  const base::Hash128 name = base::HashBytes128(std::as_bytes(std::span(text)));
  for (const KnownTemplate& known : kKnown) {
    if (known.name == name) return known.format;
  }
  return std::nullopt;
}

ApiResult<std::vector<ChatPart>> RenderChat(ChatFormat format,
                                            std::span<const ChatMessage> messages,
                                            const tokenizer::Vocabulary& vocabulary) {
  KV_CHECK(!messages.empty());
  Writer out(vocabulary);
  switch (format) {
    case ChatFormat::kPlain:
      if (vocabulary.add_bos()) out.Start();
      for (const ChatMessage& message : messages) out.Text(message.content).Text("\n");
      break;
    case ChatFormat::kChatMl:
    case ChatFormat::kQwen2:
      ChatMl(out, messages, format == ChatFormat::kQwen2);
      break;
    case ChatFormat::kQwen3:
      Qwen3(out, messages);
      break;
    case ChatFormat::kLlama2: {
      KV_TRY(Llama2(out, messages));
      break;
    }
    case ChatFormat::kLlama3:
      Llama3(out, messages);
      break;
    case ChatFormat::kZephyr:
      Zephyr(out, messages);
      break;
    case ChatFormat::kDeepseek:
      Deepseek(out, messages);
      break;
  }
  return out.Take();
}

base::Result<ChatEncoder> ChatEncoder::Make(const tokenizer::Tokenizer& tokenizer,
                                            std::string_view chat_template) {
  const auto format = FindChatFormat(chat_template);
  if (!format) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "the model's chat template (tokenizer.chat_template, {} bytes) is not "
                           "known here; known are those of chatml, qwen2, qwen3, llama2, llama3, "
                           "zephyr and deepseek",
                           chat_template.size());
  }
  // Every token that the format may name must be there.
  const ChatMessage probe[] = {{Role::kUser, ""}, {Role::kAssistant, ""}, {Role::kUser, ""}};
  const tokenizer::Vocabulary& vocabulary = tokenizer.vocabulary();
  const auto parts = RenderChat(*format, probe, vocabulary);
  KV_CHECK(parts.has_value());
  ChatEncoder encoder(tokenizer, *format);
  for (const ChatPart& part : parts.value()) {
    if (!part.token || encoder.tokens_.contains(part.text)) continue;
    const auto id = FindToken(vocabulary, part.text);
    if (!id) {
      return base::MakeError(base::ErrorCode::kUsage,
                             "the model's chat template needs the token '{}', which its "
                             "vocabulary lacks",
                             part.text);
    }
    encoder.tokens_.emplace(part.text, *id);
    if (part.text == "<|im_end|>" || part.text == "<|eot_id|>") encoder.end_tokens_.push_back(*id);
  }
  return encoder;
}

ApiResult<std::vector<base::TokenId>> ChatEncoder::Encode(
    std::span<const ChatMessage> messages) const {
  const tokenizer::Vocabulary& vocabulary = tokenizer_->vocabulary();
  KV_TRY(const auto parts, RenderChat(format_, messages, vocabulary));
  std::vector<base::TokenId> ids;
  for (const ChatPart& part : parts) {
    if (part.token) {
      ids.push_back(tokens_.at(part.text));
      continue;
    }
    auto text = tokenizer_->Encode(part.text);
    if (!text) return ApiError(text.error());
    ids.insert(ids.end(), text.value().begin(), text.value().end());
  }
  return ids;
}

}  // namespace kvasir::server
