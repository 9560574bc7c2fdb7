// GPT-2's alphabet: each byte written as one visible character, so that any bytes are a word.
//
// Source: bytes_to_unicode of OpenAI's GPT-2 encoder. Bytes that are visible in Latin-1 (33–126,
// 161–172, 174–255) stand for themselves; the others are U+0100, U+0101, … in ascending order, so a
// space is U+0120 (Ġ).
#ifndef KVASIR_TOKENIZER_BYTE_ALPHABET_H_
#define KVASIR_TOKENIZER_BYTE_ALPHABET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir::tokenizer {

// All functions here are thread-safe.

// The code point that stands for a byte.
std::uint32_t CharacterOfByte(std::uint8_t byte);

// The bytes that a piece's characters stand for, or nothing if one stands for none.
std::optional<std::string> BytesOfPiece(std::string_view piece);

// The piece that stands for these bytes.
std::string PieceOfBytes(std::string_view bytes);

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_BYTE_ALPHABET_H_
