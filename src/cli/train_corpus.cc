#include "cli/train_corpus.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/character_vocabulary.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

base::Result<std::string> ReadText(base::Env& env, const std::string& path) {
  KV_TRY(const auto file, env.Map(path));
  if (file->text().empty()) return MakeError(ErrorCode::kBadData, "'{}' is empty", path);
  const auto invalid = base::FirstInvalidUtf8(file->text());
  if (invalid) {
    return MakeError(ErrorCode::kBadData, "'{}' is not UTF-8: byte 0x{:02X} at offset {}", path,
                     static_cast<std::uint8_t>(file->text()[*invalid]), *invalid);
  }
  return std::string(file->text());
}

// The text tokens of a vocabulary that this text lacks.
std::vector<base::TokenId> Untrained(const tokenizer::VocabularySpec& vocabulary,
                                     std::span<const base::TokenId> text) {
  std::vector<bool> seen(vocabulary.pieces.size());
  for (const base::TokenId id : text) seen[id] = true;
  std::vector<base::TokenId> untrained;
  for (base::TokenId id = 0; id < seen.size(); ++id) {
    const tokenizer::TokenType type = vocabulary.types[id];
    const bool is_text =
        type == tokenizer::TokenType::kNormal || type == tokenizer::TokenType::kUserDefined;
    if (is_text && !seen[id]) untrained.push_back(id);
  }
  return untrained;
}

}  // namespace

base::Result<TrainCorpus> ReadTrainCorpus(base::Env& env, const std::vector<std::string>& texts,
                                          const std::string& held_out) {
  std::string text, measured;
  for (const std::string& path : texts) {
    KV_TRY(const std::string part, ReadText(env, path));
    text += part;
  }
  if (!held_out.empty()) {
    KV_TRY(measured, ReadText(env, held_out));
  }
  const std::string_view both[] = {text, measured};
  TrainCorpus corpus;
  KV_TRY(corpus.vocabulary, tokenizer::BuildCharacterVocabulary(both));
  KV_TRY(auto vocabulary, tokenizer::Vocabulary::Make(corpus.vocabulary));
  KV_TRY(const auto characters, tokenizer::CharacterTokenizer::Make(std::move(vocabulary)));
  KV_TRY(corpus.text, characters->Encode(text));
  KV_TRY(corpus.held_out, characters->Encode(measured));
  if (!held_out.empty() && corpus.held_out.size() < 2) {
    return MakeError(ErrorCode::kBadData, "'{}' has {} token; held-out text needs at least 2",
                     held_out, corpus.held_out.size());
  }
  corpus.vocabulary.untrained = Untrained(corpus.vocabulary, corpus.text);
  return corpus;
}

}  // namespace kvasir::cli
