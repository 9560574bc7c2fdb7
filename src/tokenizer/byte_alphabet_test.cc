#include "tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

#include "base/utf8.h"

namespace kvasir::tokenizer {
namespace {

TEST(ByteAlphabet, KnownCharacters) {
  EXPECT_EQ(CharacterOfByte('A'), std::uint32_t{'A'});
  EXPECT_EQ(CharacterOfByte(' '), 0x120u);   // Ġ
  EXPECT_EQ(CharacterOfByte('\n'), 0x10Au);  // Ċ
  EXPECT_EQ(CharacterOfByte('\t'), 0x109u);  // ĉ
  EXPECT_EQ(CharacterOfByte(0x00), 0x100u);
  EXPECT_EQ(CharacterOfByte(0x7F), 0x121u);
  EXPECT_EQ(CharacterOfByte(0xA0), 0x142u);
  EXPECT_EQ(CharacterOfByte(0xAD), 0x143u);
  EXPECT_EQ(CharacterOfByte(0xFF), 0xFFu);
  EXPECT_EQ(PieceOfBytes(" the"), "Ġthe");
  EXPECT_EQ(BytesOfPiece("ĠðŁĲī"), " \U0001F409");
}

TEST(ByteAlphabet, EveryByteHasACharacterOfItsOwn) {
  std::set<std::uint32_t> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const auto code_point = CharacterOfByte(static_cast<std::uint8_t>(byte));
    EXPECT_TRUE(seen.insert(code_point).second);
    std::string piece;
    base::AppendUtf8(code_point, piece);
    EXPECT_EQ(BytesOfPiece(piece), std::string(1, static_cast<char>(byte)));
    EXPECT_EQ(PieceOfBytes(std::string(1, static_cast<char>(byte))), piece);
  }
}

TEST(ByteAlphabet, OtherCharactersStandForNothing) {
  for (const char* piece : {" ", "a b", "\n", "春", "\u00AD", "\x7F", "\xFF", "a\xC4"}) {
    EXPECT_EQ(BytesOfPiece(piece), std::nullopt) << piece;
  }
  EXPECT_EQ(BytesOfPiece("ŃA"),
            "\xAD"
            "A");
  EXPECT_EQ(BytesOfPiece("ń"), std::nullopt);  // U+0144: one past the last.
  EXPECT_EQ(BytesOfPiece(""), "");
}

}  // namespace
}  // namespace kvasir::tokenizer
