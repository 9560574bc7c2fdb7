#include "tokenizer/stream_decoder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/philox.h"
#include "base/utf8.h"
#include "tokenizer/character_vocabulary.h"
#include "tokenizer/tokenizer_test_vocabularies.h"

namespace kvasir::tokenizer {
namespace {

const std::string kBad(base::kReplacement);

const Vocabulary& TestVocabulary() {
  static const Vocabulary vocabulary =
      Vocabulary::Make(BuildCharacterVocabulary("春🐉 a").value()).value();
  return vocabulary;
}

TokenId ByteId(std::uint8_t byte) { return *TestVocabulary().ByteToken(byte); }

std::vector<TokenId> ByteIds(std::string_view bytes) {
  std::vector<TokenId> ids;
  for (const char c : bytes) ids.push_back(ByteId(static_cast<std::uint8_t>(c)));
  return ids;
}

// Case C69: what each byte gives at once, and what the end gives.
TEST(StreamDecoder, ImpossibleAndIncompleteBytes) {
  struct Step {
    std::string_view bytes;
    std::vector<std::string> at_once;  // One for each byte.
    std::string at_end;
  };
  const Step cases[] = {
      {"\xf0\x9f\x98", {"", "", ""}, kBad},
      {"\xff", {kBad}, ""},
      {"\x80", {kBad}, ""},
      {"\xc0\xaf", {kBad, kBad}, ""},
      {"\xed\xa0\x80", {"", kBad + kBad, kBad}, ""},
      {"\xf4\x90\x80\x80", {"", kBad + kBad, kBad, kBad}, ""},
      {"\xf0\x9f\x41", {"", "", kBad + "A"}, ""},
      {"\xf0\x9f\x98\x80", {"", "", "", "\xf0\x9f\x98\x80"}, ""},
      {"\xe6\xe6\x98\xa5", {"", kBad, "", "春"}, ""},
  };
  for (const Step& step : cases) {
    StreamDecoder decoder(TestVocabulary());
    const std::vector<TokenId> ids = ByteIds(step.bytes);
    ASSERT_EQ(ids.size(), step.at_once.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(decoder.Append(ids[i]), step.at_once[i]) << i;
      EXPECT_LE(decoder.withheld_bytes(), 3u);
    }
    EXPECT_EQ(decoder.Flush(), step.at_end);
    EXPECT_EQ(decoder.withheld_bytes(), 0u);
  }
}

// Case C121.
TEST(StreamDecoder, ByteTokensBecomeCharacters) {
  const TokenId a = *TestVocabulary().FindPiece("a");
  EXPECT_EQ(Decode(TestVocabulary(), ByteIds("깰")).value(), "깰");
  std::vector<TokenId> ids = {a};
  for (const TokenId id : ByteIds("깰")) ids.push_back(id);
  EXPECT_EQ(Decode(TestVocabulary(), ids).value(), "a깰");
  const TokenId broken[] = {ByteId(0xEA), a};
  EXPECT_EQ(Decode(TestVocabulary(), broken).value(), kBad + "a");
  const TokenId tail[] = {a, ByteId(0xEA), ByteId(0xB9)};
  EXPECT_EQ(Decode(TestVocabulary(), tail).value(), "a" + kBad);
}

TEST(StreamDecoder, TokensWithoutBytesChangeNothing) {
  StreamDecoder decoder(TestVocabulary());
  EXPECT_EQ(decoder.Append(TokenId{1}), "");
  EXPECT_EQ(decoder.Append(ByteId(0xE6)), "");
  EXPECT_EQ(decoder.Append(TokenId{0}), "");
  EXPECT_EQ(decoder.Append(ByteId(0x98)), "");
  EXPECT_EQ(decoder.Append(TokenId{2}), "");
  EXPECT_EQ(decoder.Append(ByteId(0xA5)), "春");
  EXPECT_EQ(decoder.Flush(), "");
}

TEST(StreamDecoder, IsAsNewAfterFlush) {
  StreamDecoder decoder(TestVocabulary());
  EXPECT_EQ(decoder.Append("\xE6\x98"), "");
  EXPECT_EQ(decoder.Flush(), kBad);
  EXPECT_EQ(decoder.Append("\xA5"), kBad);
  EXPECT_EQ(decoder.Append("春"), "春");
  EXPECT_EQ(decoder.Flush(), "");
}

TEST(StreamDecoder, TakesBytesInAnyCut) {
  const std::string text = "春a\xff🐉\xE6\x98 \xF0\x9F";
  const std::string expected = base::ReplaceInvalidUtf8(text);
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      StreamDecoder decoder(TestVocabulary());
      std::string out = decoder.Append(std::string_view(text).substr(0, first));
      out += decoder.Append(std::string_view(text).substr(first, second - first));
      out += decoder.Append(std::string_view(text).substr(second));
      EXPECT_EQ(out + decoder.Flush(), expected) << first << " " << second;
    }
  }
}

// Every piece is valid UTF-8, no more than 3 bytes wait, and the whole equals the replacement of
// all bytes at once.
TEST(StreamDecoder, RandomTokensStreamAsAWhole) {
  constexpr std::uint64_t kSeed = 69;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const Vocabulary& vocabulary = TestVocabulary();
  const std::uint8_t likely[] = {0xE6, 0x98, 0xA5, 0xF0, 0x9F, 0x90, 0x89, 0xED, 0xA0, 0xC0};
  for (std::uint32_t trial = 0; trial < 2000; ++trial) {
    std::vector<TokenId> ids;
    for (std::uint32_t i = 0; i < trial % 30; ++i) {
      const auto random = base::Philox4x32(kSeed, {trial, i, 0, 0});
      ids.push_back(random[0] % 2 == 0 ? ByteId(likely[random[1] % std::size(likely)])
                                       : random[1] % static_cast<TokenId>(vocabulary.size()));
    }
    StreamDecoder decoder(vocabulary);
    std::string streamed;
    std::string bytes;
    for (const TokenId id : ids) {
      const std::string piece = decoder.Append(id);
      EXPECT_EQ(base::FirstInvalidUtf8(piece), std::nullopt);
      EXPECT_LE(decoder.withheld_bytes(), 3u);
      streamed += piece;
      bytes += vocabulary.Bytes(id);
    }
    streamed += decoder.Flush();
    ASSERT_EQ(streamed, base::ReplaceInvalidUtf8(bytes)) << "trial " << trial;
    ASSERT_EQ(streamed, Decode(vocabulary, ids).value()) << "trial " << trial;
  }
}

TEST(StreamDecoder, DecodeRefusesIdsOutside) {
  const TokenId ids[] = {0, 4000000000u};
  const auto text = Decode(TestVocabulary(), ids);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, base::ErrorCode::kUsage);
  EXPECT_EQ(text.error().message, "token id 4000000000 at index 1 (allowed: 0 to 262)");
}

// The space that leads each text of such a vocabulary is taken off where a text begins.
TEST(StreamDecoder, LeadingSpace) {
  VocabularySpec spec = SentencePieceSpec({{"▁a", 0}, {"▁", 0}, {"b", 0}});  // 259, 260, 261
  const Vocabulary led = Vocabulary::Make(spec).value();
  spec.add_space_prefix = false;
  const Vocabulary bare = Vocabulary::Make(spec).value();
  using From = StreamDecoder::From;
  const auto stream = [](const Vocabulary& vocabulary, From from, const std::vector<TokenId>& ids) {
    StreamDecoder decoder(vocabulary, from);
    std::string text;
    for (const TokenId id : ids) text += decoder.Append(id);
    return text + decoder.Flush();
  };
  EXPECT_EQ(stream(led, From::kStart, {259, 259}), "a a");
  EXPECT_EQ(stream(led, From::kStart, {1, 260, 259}), " a");  // <s> has no bytes.
  EXPECT_EQ(stream(led, From::kStart, {261, 259}), "b a");
  EXPECT_EQ(stream(led, From::kStart, {3 + ' ', 261}), "b");
  EXPECT_EQ(stream(led, From::kStart, {3 + 0xC3, 3 + 0xA9, 259}), "é a");
  EXPECT_EQ(stream(led, From::kMiddle, {259, 259}), " a a");
  EXPECT_EQ(stream(bare, From::kStart, {259, 259}), " a a");
  EXPECT_EQ(Decode(led, std::vector<TokenId>{1, 259, 2}).value(), "a");
  EXPECT_EQ(Decode(bare, std::vector<TokenId>{1, 259, 2}).value(), " a");
}

}  // namespace
}  // namespace kvasir::tokenizer
