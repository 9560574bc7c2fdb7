// render_chat TEMPLATE MESSAGES: what the server makes of messages under a chat template, for
// chat_templates.py. MESSAGES: one conversation a line, [["role","content"],…] as JSON; printed is
// one JSON string a line, or null where the template refuses. The start and end tokens are <s> and
// </s>.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "server/chat_template.h"
#include "server/json_writer.h"
#include "tokenizer/vocabulary.h"

namespace kvasir {
namespace {

std::string ReadAll(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

base::Result<tokenizer::Vocabulary> StartAndEnd() {
  tokenizer::VocabularySpec spec;
  spec.pieces = {"<s>", "</s>", "a"};
  spec.scores = {0, 0, 0};
  spec.types = {tokenizer::TokenType::kControl, tokenizer::TokenType::kControl,
                tokenizer::TokenType::kNormal};
  spec.bos = 0;
  spec.eos = 1;
  return tokenizer::Vocabulary::Make(std::move(spec));
}

std::vector<server::ChatMessage> MessagesOf(const server::JsonValue& talk) {
  std::vector<server::ChatMessage> messages;
  for (const server::JsonValue& message : talk.items) {
    const std::string& role = message.items[0].text;
    messages.push_back({role == "system" ? server::Role::kSystem
                        : role == "user" ? server::Role::kUser
                                         : server::Role::kAssistant,
                        message.items[1].text});
  }
  return messages;
}

int Main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto vocabulary = StartAndEnd();
  const auto format = server::FindChatFormat(ReadAll(argv[1]));
  if (!vocabulary || !format) {
    std::fputs("render_chat: the template is not known\n", stderr);
    return 1;
  }
  std::ifstream talks(argv[2]);
  for (std::string line; std::getline(talks, line);) {
    const auto talk = constraints::ParseJson("a line", line);
    if (!talk) return 1;
    const auto parts = RenderChat(*format, MessagesOf(talk.value()), vocabulary.value());
    std::string text = "null";
    if (parts) {
      std::string joined;
      for (const server::ChatPart& part : parts.value()) joined += part.text;
      text.clear();
      server::AppendJsonString(text, joined);
    }
    std::printf("%s\n", text.c_str());
  }
  return 0;
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) { return kvasir::Main(argc, argv); }
