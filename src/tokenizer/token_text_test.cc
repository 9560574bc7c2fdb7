#include "tokenizer/token_text.h"

#include <gtest/gtest.h>

#include "tokenizer/character_vocabulary.h"

namespace kvasir::tokenizer {
namespace {

TEST(TokenTextTest, IsTheTextOrTheNameOfWhatIsNoCharacter) {
  const Vocabulary vocabulary = Vocabulary::Make(BuildCharacterVocabulary("春\n").value()).value();
  EXPECT_EQ(TokenText(vocabulary, vocabulary.FindPiece("春").value()), "春");
  EXPECT_EQ(TokenText(vocabulary, vocabulary.ByteToken(0xE6).value()), "<0xE6>");
  EXPECT_EQ(TokenText(vocabulary, vocabulary.ByteToken(0x41).value()), "A");
  EXPECT_EQ(TokenText(vocabulary, vocabulary.eos().value()),
            vocabulary.piece(vocabulary.eos().value()));
}

}  // namespace
}  // namespace kvasir::tokenizer
