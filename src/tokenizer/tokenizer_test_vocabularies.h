// For tests: small vocabularies of each kind, and random texts.
#ifndef KVASIR_TOKENIZER_TOKENIZER_TEST_VOCABULARIES_H_
#define KVASIR_TOKENIZER_TOKENIZER_TEST_VOCABULARIES_H_

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

inline TokenId AddToken(VocabularySpec& spec, std::string piece, TokenType type, float score = 0) {
  spec.pieces.push_back(std::move(piece));
  spec.types.push_back(type);
  spec.scores.push_back(score);
  return static_cast<TokenId>(spec.pieces.size() - 1);
}

// <unk> <s> </s>, 256 byte tokens (3 … 258), then these pieces (▁ for a space) with these scores;
// texts are led by a space.
inline VocabularySpec SentencePieceSpec(const std::vector<std::pair<std::string, float>>& pieces) {
  VocabularySpec spec;
  AddToken(spec, "<unk>", TokenType::kUnknown);
  AddToken(spec, "<s>", TokenType::kControl);
  AddToken(spec, "</s>", TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    AddToken(spec, fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  }
  for (const auto& [piece, score] : pieces) AddToken(spec, piece, TokenType::kNormal, score);
  spec.unk = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.add_bos = true;
  spec.add_space_prefix = true;
  return spec;
}

// The 256 bytes (0 … 255) and what these merges make, in order; then <|end|>. Merges are given as
// bytes: {" t", "he"}.
inline VocabularySpec ByteLevelSpec(
    PreTokenizer pre, const std::vector<std::pair<std::string, std::string>>& merges) {
  VocabularySpec spec;
  spec.kind = VocabularyKind::kByteLevel;
  spec.pre = pre;
  for (int byte = 0; byte < 256; ++byte) {
    AddToken(spec, PieceOfBytes(std::string(1, static_cast<char>(byte))), TokenType::kNormal);
  }
  for (const auto& [left, right] : merges) {
    AddToken(spec, PieceOfBytes(left + right), TokenType::kNormal);
    spec.merges.push_back(PieceOfBytes(left) + " " + PieceOfBytes(right));
  }
  spec.eos = AddToken(spec, "<|end|>", TokenType::kControl);
  return spec;
}

// Some characters of `alphabet`, and now and then any other.
inline std::string RandomText(std::uint64_t seed, std::uint32_t trial, std::size_t characters,
                              std::span<const std::uint32_t> alphabet) {
  std::string text;
  for (std::uint32_t i = 0; i < characters; ++i) {
    const auto random = base::Philox4x32(seed, {trial, i, 0, 0});
    std::uint32_t c = alphabet[random[1] % alphabet.size()];
    if (random[0] % 16 == 0) c = random[2] % 0x110000;
    if (c >= 0xD800 && c <= 0xDFFF) c = 0x2581;
    base::AppendUtf8(c, text);
  }
  return text;
}

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_TOKENIZER_TEST_VOCABULARIES_H_
