#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include "tokenizer/byte_level_tokenizer.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/character_vocabulary.h"
#include "tokenizer/sentencepiece_tokenizer.h"
#include "tokenizer/tokenizer_test_vocabularies.h"

namespace kvasir::tokenizer {
namespace {

template <typename Kind>
bool Makes(const VocabularySpec& spec) {
  const auto made = MakeTokenizer(Vocabulary::Make(spec).value());
  return made && dynamic_cast<const Kind*>(made.value().get()) != nullptr;
}

TEST(MakeTokenizer, TheOneTheVocabularyIsFor) {
  const VocabularySpec characters = BuildCharacterVocabulary("春风 ab").value();
  EXPECT_TRUE(Makes<CharacterTokenizer>(characters));
  EXPECT_TRUE(Makes<SentencePieceTokenizer>(SentencePieceSpec({{"ab", 0}})));
  for (const PreTokenizer pre : {PreTokenizer::kGpt2, PreTokenizer::kQwen2}) {
    EXPECT_TRUE(Makes<ByteLevelTokenizer>(ByteLevelSpec(pre, {{"a", "b"}})));
  }
  VocabularySpec led = characters;
  led.add_space_prefix = true;
  EXPECT_TRUE(Makes<SentencePieceTokenizer>(led));
  for (const TokenType type : {TokenType::kNormal, TokenType::kUserDefined}) {
    VocabularySpec longer = characters;
    AddToken(longer, "<think>", type);
    EXPECT_TRUE(Makes<SentencePieceTokenizer>(longer));
  }
}

// A vocabulary of characters is tokenized alike by both, should a file not say which.
TEST(MakeTokenizer, CharactersAndSentencePieceAgree) {
  const VocabularySpec spec = BuildCharacterVocabulary("春风 ab\n").value();
  const auto characters = CharacterTokenizer::Make(Vocabulary::Make(spec).value()).value();
  const auto pieces = SentencePieceTokenizer::Make(Vocabulary::Make(spec).value()).value();
  for (const char* text : {"", "春风", " a b ", "▁é\n", "<s>", "\U0001F409"}) {
    EXPECT_EQ(characters->Encode(text).value(), pieces->Encode(text).value()) << text;
  }
}

TEST(MakeTokenizer, PassesOnWhatIsWrong) {
  VocabularySpec spec = ByteLevelSpec(PreTokenizer::kGpt2, {});
  spec.merges.push_back("ab");
  const auto made = MakeTokenizer(Vocabulary::Make(spec).value());
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().message,
            "merge 0 is 'ab': it must be two tokens with a blank between them");
}

}  // namespace
}  // namespace kvasir::tokenizer
