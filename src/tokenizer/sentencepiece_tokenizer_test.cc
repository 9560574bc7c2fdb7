#include "tokenizer/sentencepiece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/utf8.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer_test_vocabularies.h"

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;

// Pieces 259 … 270.
VocabularySpec SmallSpec() {
  return SentencePieceSpec({{"▁", -9},
                            {"a", -10},
                            {"b", -11},
                            {"c", -12},
                            {"▁a", -1},
                            {"ab", -2},
                            {"bc", -3},
                            {"abc", -4},
                            {"▁abc", -5},
                            {"春", -13},
                            {"春▁", -6},
                            {"<", -14}});
}
constexpr TokenId kSpace = 259, kA = 260, kB = 261, kC = 262, kSpaceA = 263, kAb = 264, kBc = 265,
                  kAbc = 266, kSpaceAbc = 267, kSpring = 268, kSpringSpace = 269, kLess = 270;

std::unique_ptr<SentencePieceTokenizer> Make(VocabularySpec spec) {
  return SentencePieceTokenizer::Make(Vocabulary::Make(std::move(spec)).value()).value();
}

void ExpectRoundTrip(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.Encode(text);
  ASSERT_TRUE(ids.has_value()) << text;
  EXPECT_EQ(Decode(tokenizer.vocabulary(), ids.value()).value(), text);
}

TEST(SentencePieceTokenizer, MergesTheBestFirst) {
  const auto tokenizer = Make(SmallSpec());
  // ▁a (−1) wins over ab (−2); then bc; and then both are ▁abc.
  EXPECT_THAT(tokenizer->Encode("abc").value(), ElementsAre(kSpaceAbc));
  EXPECT_THAT(tokenizer->Encode("ab").value(), ElementsAre(kSpaceA, kB));
  EXPECT_THAT(tokenizer->Encode("bbc").value(), ElementsAre(kSpace, kB, kBc));
  EXPECT_THAT(tokenizer->Encode("cab").value(), ElementsAre(kSpace, kC, kAb));
  EXPECT_THAT(tokenizer->Encode("b abc").value(), ElementsAre(kSpace, kB, kSpaceAbc));
  EXPECT_THAT(tokenizer->Encode("春 a").value(), ElementsAre(kSpace, kSpring, kSpaceA));
  EXPECT_THAT(tokenizer->Encode("春 b").value(), ElementsAre(kSpace, kSpringSpace, kB));
  VocabularySpec ties = SmallSpec();
  ties.scores[kAb] = ties.scores[kBc];
  ties.types[kAbc] = TokenType::kUnused;
  EXPECT_THAT(Make(ties)->Encode("babc").value(), ElementsAre(kSpace, kB, kAb, kC));
}

TEST(SentencePieceTokenizer, LeadingSpace) {
  const auto tokenizer = Make(SmallSpec());
  EXPECT_TRUE(tokenizer->Encode("").value().empty());
  EXPECT_THAT(tokenizer->Encode("b").value(), ElementsAre(kSpace, kB));
  EXPECT_THAT(tokenizer->Encode(" b").value(), ElementsAre(kSpace, kSpace, kB));
  EXPECT_THAT(tokenizer->Encode(" a").value(), ElementsAre(kSpace, kSpaceA));
  VocabularySpec bare = SmallSpec();
  bare.add_space_prefix = false;
  EXPECT_THAT(Make(bare)->Encode("abc").value(), ElementsAre(kAbc));
  EXPECT_THAT(Make(bare)->Encode("b a").value(), ElementsAre(kB, kSpaceA));
  for (const VocabularySpec& spec : {SmallSpec(), bare}) {
    for (const char* text : {"", " ", "  ", "a", " a", "  abc  ", "\n", "春 风"}) {
      ExpectRoundTrip(*Make(spec), text);
    }
  }
}

// Case C121, both directions.
TEST(SentencePieceTokenizer, ByteFallback) {
  const auto tokenizer = Make(SmallSpec());
  EXPECT_THAT(tokenizer->Encode("é").value(), ElementsAre(kSpace, 3 + 0xC3, 3 + 0xA9));
  EXPECT_THAT(tokenizer->Encode("a▁").value(), ElementsAre(kSpaceA, 3 + 0xE2, 3 + 0x96, 3 + 0x81));
  for (const char* text : {"é", "▁", " ▁ a", "잠 깰 수", "\U0001F409", "\x01\x7F"}) {
    ExpectRoundTrip(*tokenizer, text);
  }
  ExpectRoundTrip(*tokenizer, std::string("a\0b", 3));
}

// Case C121: typed text that looks like a token is text, however it is merged.
TEST(SentencePieceTokenizer, TypedTokenNamesAreText) {
  VocabularySpec spec = SmallSpec();
  for (const char* piece : {"s", ">", "<s", "/", "</", "</s", "0", "x", "4", "1"}) {
    AddToken(spec, piece, TokenType::kNormal, 1);
  }
  const auto tokenizer = Make(spec);
  for (const char* typed : {"<s>", "</s>", "<unk>", "<0x41>", "a<s>b"}) {
    const Ids ids = tokenizer->Encode(typed).value();
    for (const TokenId id : ids) {
      EXPECT_NE(tokenizer->vocabulary().type(id), TokenType::kControl);
      EXPECT_NE(tokenizer->vocabulary().type(id), TokenType::kUnknown);
      EXPECT_NE(id, 3u + 'A');
    }
    ExpectRoundTrip(*tokenizer, typed);
  }
}

TEST(SentencePieceTokenizer, UserDefinedTokensAreCutOutFirst) {
  VocabularySpec spec = SmallSpec();
  const TokenId user = AddToken(spec, "<a", TokenType::kUserDefined);
  const TokenId longer = AddToken(spec, "<abc", TokenType::kUserDefined);
  const auto tokenizer = Make(spec);
  EXPECT_THAT(tokenizer->Encode("b<a b").value(), ElementsAre(kSpace, kB, user, kSpace, kB));
  EXPECT_THAT(tokenizer->Encode("<abc<ab").value(), ElementsAre(kSpace, longer, user, kB));
  EXPECT_THAT(tokenizer->Encode("<b").value(), ElementsAre(kSpace, kLess, kB));
  for (const char* text : {"<a", "<abc<ab", "a<a", " <a "}) ExpectRoundTrip(*tokenizer, text);
}

TEST(SentencePieceTokenizer, RefusesWhatItCannotExpress) {
  VocabularySpec spec;
  for (const char* piece : {"▁", "a", "b", "ab"}) AddToken(spec, piece, TokenType::kNormal);
  spec.add_space_prefix = true;
  const auto tokenizer = Make(spec);
  EXPECT_THAT(tokenizer->Encode("a b").value(), ElementsAre(0, 1, 0, 2));
  const auto missing = tokenizer->Encode("ab春");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kUsage);
  EXPECT_THAT(missing.error().message, HasSubstr("the character '春' (U+6625) at offset 2"));
  const auto invalid = tokenizer->Encode("ab\xE6\x98");
  ASSERT_FALSE(invalid.has_value());
  EXPECT_EQ(invalid.error().code, ErrorCode::kBadData);
  EXPECT_EQ(invalid.error().message, "not valid UTF-8: byte 0xE6 at offset 2");
  spec.pieces[0] = "c";
  const auto no_space = Make(spec)->Encode("ab");
  ASSERT_FALSE(no_space.has_value());
  EXPECT_THAT(no_space.error().message, HasSubstr("the character ' ' (U+0020) at offset 0"));
  EXPECT_FALSE(
      SentencePieceTokenizer::Make(Vocabulary::Make(ByteLevelSpec(PreTokenizer::kGpt2, {})).value())
          .has_value());
}

// As run.c of llama2.c does it: join the best of all pairs until none joins.
Ids SlowEncode(const Vocabulary& vocabulary, const std::string& text) {
  std::vector<std::string> parts;
  const std::string led = text.empty() ? "" : " " + text;
  for (const auto character : base::SplitCharacters(led)) parts.emplace_back(character);
  const auto find = [&](const std::string& part) -> std::optional<TokenId> {
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      if (vocabulary.type(id) == TokenType::kNormal && vocabulary.Bytes(id) == part) return id;
    }
    return std::nullopt;
  };
  while (true) {
    std::optional<std::size_t> best;
    float score = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto id = find(parts[i] + parts[i + 1]);
      if (!id || (best && vocabulary.score(*id) <= score)) continue;
      best = i;
      score = vocabulary.score(*id);
    }
    if (!best) break;
    parts[*best] += parts[*best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) {
    if (const auto id = find(part)) {
      ids.push_back(*id);
    } else {
      for (const char c : part) ids.push_back(3 + static_cast<std::uint8_t>(c));
    }
  }
  return ids;
}

TEST(SentencePieceTokenizer, RandomTextsAgreeWithTheSlowWay) {
  constexpr std::uint64_t kSeed = 20261130;
  const auto alphabet = base::Utf8ToCodePoints("aab bc  春é\n").value();
  for (std::uint32_t trial = 0; trial < 60; ++trial) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", trial " << trial);
    // Random pieces over the alphabet, with random scores, many of them equal.
    std::vector<std::pair<std::string, float>> pieces;
    for (std::uint32_t i = 0; i < 30; ++i) {
      const auto draw = base::Philox4x32(kSeed, {trial, i, 1, 0});
      std::string piece;
      for (std::uint32_t k = 0; k < 1 + draw[0] % 4; ++k) {
        const auto c = alphabet[base::Philox4x32(kSeed, {trial, i, 2, k})[0] % alphabet.size()];
        base::AppendUtf8(c == ' ' ? 0x2581 : c, piece);
      }
      pieces.emplace_back(piece, -static_cast<float>(draw[1] % 12));
    }
    const auto tokenizer = Make(SentencePieceSpec(pieces));
    for (std::uint32_t k = 0; k < 10; ++k) {
      const std::string text = RandomText(kSeed, 1000 + trial * 10 + k, k * 5, alphabet);
      ASSERT_EQ(tokenizer->Encode(text).value(), SlowEncode(tokenizer->vocabulary(), text));
      ExpectRoundTrip(*tokenizer, text);
    }
  }
}

// One word of a megabyte, merged in every way: seconds would mean a quadratic step.
TEST(SentencePieceTokenizer, LongTextsTakeTimeInProportion) {
  std::vector<std::pair<std::string, float>> pieces;
  for (std::string piece = "a"; piece.size() <= 64; piece += piece) {
    pieces.emplace_back(piece, -static_cast<float>(piece.size()));
  }
  const auto tokenizer = Make(SentencePieceSpec(pieces));
  const std::string text(1 << 20, 'a');
  const auto start = std::chrono::steady_clock::now();
  const Ids ids = tokenizer->Encode(text).value();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(ids.size(), 1 + text.size() / 64);
  EXPECT_EQ(Decode(tokenizer->vocabulary(), ids).value(), text);
}

}  // namespace
}  // namespace kvasir::tokenizer
