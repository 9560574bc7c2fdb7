#include "tokenizer/piece_index.h"

#include <gtest/gtest.h>

#include "tokenizer/tokenizer_test_vocabularies.h"

namespace kvasir::tokenizer {
namespace {

TEST(PieceIndex, NormalTokensOnly) {
  VocabularySpec spec = SentencePieceSpec({{"▁a", 0}, {"b", 0}, {"b", 0}});
  AddToken(spec, "<think>", TokenType::kUserDefined);
  AddToken(spec, "x", TokenType::kUnused);
  const Vocabulary vocabulary = Vocabulary::Make(spec).value();
  const PieceIndex pieces(vocabulary);
  EXPECT_EQ(pieces.Find(" a"), 259u);
  EXPECT_EQ(pieces.Find("b"), 260u);  // The lower id of two.
  for (const char* other : {"", "a", "▁a", "<s>", "<0x41>", "A", "<think>", "x", "bb"}) {
    EXPECT_EQ(pieces.Find(other), kNoToken) << other;
  }
}

}  // namespace
}  // namespace kvasir::tokenizer
