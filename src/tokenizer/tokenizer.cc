#include "tokenizer/tokenizer.h"

#include <utility>

#include "tokenizer/byte_level_tokenizer.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/sentencepiece_tokenizer.h"

namespace kvasir::tokenizer {
namespace {

template <typename Kind>
base::Result<std::unique_ptr<Tokenizer>> MakeKind(Vocabulary vocabulary) {
  KV_TRY(std::unique_ptr<Tokenizer> made, Kind::Make(std::move(vocabulary)));
  return made;
}

}  // namespace

base::Result<std::unique_ptr<Tokenizer>> MakeTokenizer(Vocabulary vocabulary) {
  if (vocabulary.spec().kind == VocabularyKind::kByteLevel) {
    return MakeKind<ByteLevelTokenizer>(std::move(vocabulary));
  }
  if (IsCharacterLevel(vocabulary.spec()) && !vocabulary.add_space_prefix()) {
    return MakeKind<CharacterTokenizer>(std::move(vocabulary));
  }
  return MakeKind<SentencePieceTokenizer>(std::move(vocabulary));
}

}  // namespace kvasir::tokenizer
