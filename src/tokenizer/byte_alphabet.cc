#include "tokenizer/byte_alphabet.h"

#include <array>
#include <cstddef>

#include "base/utf8.h"

namespace kvasir::tokenizer {
namespace {

constexpr std::uint32_t kFirstStandIn = 0x100;

constexpr bool IsVisible(std::uint32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<std::uint32_t, 256> MakeAlphabet() {
  std::array<std::uint32_t, 256> alphabet{};
  std::uint32_t next = kFirstStandIn;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    alphabet[byte] = IsVisible(byte) ? byte : next++;
  }
  return alphabet;
}
constexpr std::array<std::uint32_t, 256> kAlphabet = MakeAlphabet();

// Code points of the alphabet are below this.
constexpr std::size_t kEnd = kFirstStandIn + 68;
static_assert(kAlphabet[173] == kEnd - 1);

constexpr std::array<std::int16_t, kEnd> MakeInverse() {
  std::array<std::int16_t, kEnd> inverse{};
  for (std::int16_t& byte : inverse) byte = -1;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    inverse[kAlphabet[byte]] = static_cast<std::int16_t>(byte);
  }
  return inverse;
}
constexpr std::array<std::int16_t, kEnd> kInverse = MakeInverse();

}  // namespace

std::uint32_t CharacterOfByte(std::uint8_t byte) { return kAlphabet[byte]; }

std::optional<std::string> BytesOfPiece(std::string_view piece) {
  std::string bytes;
  while (!piece.empty()) {
    const base::Utf8Step step = base::DecodeUtf8(piece);
    if (step.status != base::Utf8Status::kOk || step.code_point >= kEnd) return std::nullopt;
    const std::int16_t byte = kInverse[step.code_point];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    piece.remove_prefix(step.bytes);
  }
  return bytes;
}

std::string PieceOfBytes(std::string_view bytes) {
  std::string piece;
  for (const char c : bytes) base::AppendUtf8(kAlphabet[static_cast<std::uint8_t>(c)], piece);
  return piece;
}

}  // namespace kvasir::tokenizer
