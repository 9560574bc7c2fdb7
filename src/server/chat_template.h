// Chat templates: from messages to the prompt that a model of conversations was trained on.
//
// A GGUF file holds its template as a program in the language Jinja (tokenizer.chat_template). That
// language is not run here: the templates known are recognised by their text as a whole, and what
// they write is written here. A template that is not known is refused, never guessed.
#ifndef KVASIR_SERVER_CHAT_TEMPLATE_H_
#define KVASIR_SERVER_CHAT_TEMPLATE_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "server/completion_call.h"
#include "tokenizer/tokenizer.h"

namespace kvasir::server {

enum class ChatFormat {
  kPlain,     // No template: each message and then a newline; nothing else, no names of roles.
  kChatMl,    // <|im_start|>ROLE …<|im_end|>
  kQwen2,     // The same, with a system message where there is none.
  kQwen3,     // The same without it, and without the thoughts of earlier answers.
  kLlama2,    // [INST] … [/INST]
  kLlama3,    // <|start_header_id|>ROLE<|end_header_id|> …<|eot_id|>
  kZephyr,    // <|user|> …
  kDeepseek,  // User: … Assistant: …
};
std::string_view ChatFormatName(ChatFormat format);

// A part of a prompt: text, or a token by its piece.
struct ChatPart {
  std::string text;
  bool token = false;
  friend bool operator==(const ChatPart&, const ChatPart&) = default;
};

// The format of this template; kPlain for an empty one; nothing for one that is not known. Newlines
// written as \n and newlines at the end make no difference.
std::optional<ChatFormat> FindChatFormat(std::string_view chat_template);

// What the template writes up to where the answer begins. The start and end tokens are named by
// their pieces. ApiError 400 where the template refuses messages: roles that do not take turns.
ApiResult<std::vector<ChatPart>> RenderChat(ChatFormat format,
                                            std::span<const ChatMessage> messages,
                                            const tokenizer::Vocabulary& vocabulary);

// Messages to tokens, for one model. Immutable, so thread-safe; borrows the tokenizer.
class ChatEncoder {
 public:
  // kUsage for a template that is not known, or one whose tokens the vocabulary lacks.
  static base::Result<ChatEncoder> Make(const tokenizer::Tokenizer& tokenizer,
                                        std::string_view chat_template);

  ChatFormat format() const { return format_; }
  // At least one token. ApiErrors as of RenderChat and Tokenizer::Encode.
  ApiResult<std::vector<base::TokenId>> Encode(std::span<const ChatMessage> messages) const;
  // Of an answer, besides those of the vocabulary: what the template ends a message with.
  const std::vector<base::TokenId>& end_tokens() const { return end_tokens_; }

 private:
  ChatEncoder(const tokenizer::Tokenizer& tokenizer, ChatFormat format)
      : tokenizer_(&tokenizer), format_(format) {}

  const tokenizer::Tokenizer* tokenizer_;
  ChatFormat format_;
  std::map<std::string, base::TokenId> tokens_;  // All that the format names, by piece.
  std::vector<base::TokenId> end_tokens_;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_CHAT_TEMPLATE_H_
