// Character tokenizer and stream decoder: valid text comes back byte for byte, with a vocabulary
// made for it and with one that knows little of it; any bytes, taken as text or as token ids, end
// in an Error or in text, and streaming gives what decoding at once gives.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/character_vocabulary.h"
#include "tokenizer/stream_decoder.h"

namespace {

using kvasir::tokenizer::CharacterTokenizer;
using kvasir::tokenizer::StreamDecoder;
using kvasir::tokenizer::TokenId;
using kvasir::tokenizer::Tokenizer;
using kvasir::tokenizer::Vocabulary;

std::unique_ptr<CharacterTokenizer> MakeTokenizer(std::string_view text) {
  auto spec = kvasir::tokenizer::BuildCharacterVocabulary(text);
  KV_CHECK(spec.has_value());
  auto vocabulary = Vocabulary::Make(std::move(spec).value());
  KV_CHECK(vocabulary.has_value());
  auto tokenizer = CharacterTokenizer::Make(std::move(vocabulary).value());
  KV_CHECK(tokenizer.has_value());
  return std::move(tokenizer).value();
}

std::string Stream(const Vocabulary& vocabulary, const std::vector<TokenId>& ids) {
  StreamDecoder decoder(vocabulary);
  std::string text;
  for (const TokenId id : ids) {
    const std::string piece = decoder.Append(id);
    KV_CHECK(!kvasir::base::FirstInvalidUtf8(piece));
    KV_CHECK(decoder.withheld_bytes() <= 3);
    text += piece;
  }
  return text + decoder.Flush();
}

void CheckRoundTrip(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.Encode(text);
  KV_CHECK(ids.has_value());
  const auto decoded = kvasir::tokenizer::Decode(tokenizer.vocabulary(), ids.value());
  KV_CHECK(decoded.has_value() && decoded.value() == text);
  KV_CHECK(Stream(tokenizer.vocabulary(), ids.value()) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<CharacterTokenizer> small = MakeTokenizer("春风 a<0x41>\n");
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  if (kvasir::base::FirstInvalidUtf8(input)) {
    KV_CHECK(!small->Encode(input).has_value());
    KV_CHECK(!kvasir::tokenizer::BuildCharacterVocabulary(input).has_value());
  } else {
    CheckRoundTrip(*small, input);
    if (size > 0 && size <= 4096) CheckRoundTrip(*MakeTokenizer(input), input);
  }

  // Two input bytes a token id; those outside the vocabulary are refused.
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i + 1 < size; i += 2) ids.push_back(data[i] | (data[i + 1] & 1u) << 8);
  const auto decoded = kvasir::tokenizer::Decode(small->vocabulary(), ids);
  KV_CHECK(decoded.has_value() == small->vocabulary().CheckIds(ids).has_value());
  if (decoded) {
    std::string bytes;
    for (const TokenId id : ids) bytes += small->vocabulary().Bytes(id);
    KV_CHECK(decoded.value() == kvasir::base::ReplaceInvalidUtf8(bytes));
    KV_CHECK(decoded.value() == Stream(small->vocabulary(), ids));
  }
  return 0;
}
