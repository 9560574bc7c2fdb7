#include "tokenizer/byte_level_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "base/utf8.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer_test_vocabularies.h"
#include "tokenizer/unicode.h"

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;
using Merges = std::vector<std::pair<std::string, std::string>>;

constexpr PreTokenizer kAll[] = {PreTokenizer::kGpt2, PreTokenizer::kLlama3, PreTokenizer::kQwen2};
// Tokens 256 …: "he" "th" "the" " the" "\xE6\x98" "\xE6\x98\xA5" (春) "11".
const Merges kMerges = {{"h", "e"},       {"t", "h"},           {"th", "e"}, {" ", "the"},
                        {"\xE6", "\x98"}, {"\xE6\x98", "\xA5"}, {"1", "1"}};

std::unique_ptr<ByteLevelTokenizer> Make(VocabularySpec spec) {
  return ByteLevelTokenizer::Make(Vocabulary::Make(std::move(spec)).value()).value();
}
std::unique_ptr<ByteLevelTokenizer> Make(PreTokenizer pre, const Merges& merges = kMerges) {
  return Make(ByteLevelSpec(pre, merges));
}

void ExpectRoundTrip(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.Encode(text);
  ASSERT_TRUE(ids.has_value()) << text;
  EXPECT_EQ(Decode(tokenizer.vocabulary(), ids.value()).value(), text);
}

TEST(ByteLevelTokenizer, MergesByRankInsideWords) {
  const auto tokenizer = Make(PreTokenizer::kGpt2);
  EXPECT_TRUE(tokenizer->Encode("").value().empty());
  EXPECT_THAT(tokenizer->Encode("he").value(), ElementsAre(256));
  // h e is the best pair, so t stays alone: the result "the" is made from th and e only.
  EXPECT_THAT(tokenizer->Encode("the").value(), ElementsAre('t', 256));
  EXPECT_THAT(tokenizer->Encode("th e").value(), ElementsAre(257, ' ', 'e'));
  EXPECT_THAT(tokenizer->Encode("春").value(), ElementsAre(261));
  EXPECT_THAT(tokenizer->Encode("昨").value(), ElementsAre(260, 0xA8));
  const auto other = Make(PreTokenizer::kGpt2, {{"t", "h"}, {"th", "e"}, {" ", "the"}});
  EXPECT_THAT(other->Encode("the the").value(), ElementsAre(257, 258));
  EXPECT_THAT(other->Encode("  the").value(), ElementsAre(' ', 258));
  // A word's end is a wall: "11" is merged only inside one.
  EXPECT_THAT(Make(PreTokenizer::kGpt2)->Encode("11111").value(), ElementsAre(262, 262, '1'));
  EXPECT_THAT(Make(PreTokenizer::kLlama3)->Encode("11111").value(), ElementsAre(262, '1', 262));
  EXPECT_THAT(Make(PreTokenizer::kQwen2)->Encode("11").value(), ElementsAre('1', '1'));
}

// For llama3 a word that is a token is that token, though its merges end elsewhere.
TEST(ByteLevelTokenizer, WholeWordsOfLlama3) {
  EXPECT_THAT(Make(PreTokenizer::kLlama3)->Encode("the").value(), ElementsAre(258));
  EXPECT_THAT(Make(PreTokenizer::kLlama3)->Encode("them").value(), ElementsAre('t', 256, 'm'));
  EXPECT_THAT(Make(PreTokenizer::kQwen2)->Encode("the").value(), ElementsAre('t', 256));
}

TEST(ByteLevelTokenizer, Qwen2ComposesFirst) {
  const std::string decomposed = "e\u0301";
  EXPECT_EQ(Make(PreTokenizer::kQwen2)->Encode(decomposed).value(), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(Make(PreTokenizer::kLlama3)->Encode(decomposed).value(), (Ids{'e', 0xCC, 0x81}));
}

// Case C121: typed text that looks like a token is text; user-defined tokens are cut out.
TEST(ByteLevelTokenizer, SpecialsInText) {
  for (const PreTokenizer pre : kAll) {
    VocabularySpec spec = ByteLevelSpec(pre, kMerges);
    const TokenId think = AddToken(spec, "<think>", TokenType::kUserDefined);
    const auto tokenizer = Make(spec);
    EXPECT_EQ(tokenizer->Encode("<|end|>").value().size(), 7u);
    EXPECT_THAT(tokenizer->Encode("he<think>1").value(), ElementsAre(256, think, '1'));
    EXPECT_THAT(tokenizer->Encode("<think").value(), ElementsAre('<', 257, 'i', 'n', 'k'));
    for (const char* text : {"<|end|>", "a <think> b", "<think><think>", "<|end|><think>"}) {
      ExpectRoundTrip(*tokenizer, text);
    }
  }
}

TEST(ByteLevelTokenizer, EveryCharacterComesBack) {
  const auto tokenizer = Make(PreTokenizer::kLlama3);
  std::string text;
  for (std::uint32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 61) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    base::AppendUtf8(c, text);
  }
  ExpectRoundTrip(*tokenizer, text);
  ExpectRoundTrip(*Make(PreTokenizer::kGpt2), text);
}

TEST(ByteLevelTokenizer, RefusesText) {
  VocabularySpec spec = ByteLevelSpec(PreTokenizer::kGpt2, {});
  spec.types[0xA5] = TokenType::kUnused;  // The last byte of 春.
  const auto missing = Make(spec)->Encode("a春");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kUsage);
  EXPECT_THAT(missing.error().message, HasSubstr("the character '春' (U+6625) at offset 1"));
  const auto invalid = Make(spec)->Encode("ab\xE6\x98");
  ASSERT_FALSE(invalid.has_value());
  EXPECT_EQ(invalid.error().message, "not valid UTF-8: byte 0xE6 at offset 2");
}

TEST(ByteLevelTokenizer, RefusesBadMerges) {
  for (const char* merge :
       {"", " ", "a", "a ", " a", "a b c", "a zz", "zz a", "a b", "<|end|> a", "\xFF a"}) {
    VocabularySpec spec = ByteLevelSpec(PreTokenizer::kGpt2, kMerges);
    spec.merges.push_back(merge);
    const auto tokenizer = ByteLevelTokenizer::Make(Vocabulary::Make(spec).value());
    ASSERT_FALSE(tokenizer.has_value()) << merge;
    EXPECT_EQ(tokenizer.error().code, ErrorCode::kBadData);
    EXPECT_THAT(tokenizer.error().message, HasSubstr("merge 7 is '"));
  }
  VocabularySpec long_merge = ByteLevelSpec(PreTokenizer::kGpt2, {});
  long_merge.merges.emplace_back(10'000, 'x');
  const auto tokenizer = ByteLevelTokenizer::Make(Vocabulary::Make(long_merge).value());
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_LT(tokenizer.error().message.size(), 200u);
  EXPECT_FALSE(
      ByteLevelTokenizer::Make(Vocabulary::Make(SentencePieceSpec({})).value()).has_value());
}

// As GPT-2's encoder does it: find the pair of the lowest rank, join it, begin again.
Ids SlowWord(const VocabularySpec& spec, std::string_view word) {
  std::vector<std::string> parts;
  for (const char c : word) parts.push_back(PieceOfBytes(std::string(1, c)));
  while (true) {
    std::size_t best_rank = std::numeric_limits<std::size_t>::max(), best = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto rank = static_cast<std::size_t>(
          std::find(spec.merges.begin(), spec.merges.end(), parts[i] + " " + parts[i + 1]) -
          spec.merges.begin());
      if (rank < spec.merges.size() && rank < best_rank) best_rank = rank, best = i;
    }
    if (best_rank == std::numeric_limits<std::size_t>::max()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) {
    ids.push_back(static_cast<TokenId>(std::find(spec.pieces.begin(), spec.pieces.end(), part) -
                                       spec.pieces.begin()));
  }
  return ids;
}

// Merges of random parts that are already there.
Merges RandomMerges(std::uint64_t seed, std::uint32_t trial) {
  std::vector<std::string> parts = {"a", "b", " ", "1", "\xE6", "\x98", "\xA5", "\n"};
  Merges merges;
  for (std::uint32_t i = 0; i < 25; ++i) {
    const auto draw = base::Philox4x32(seed, {trial, i, 1, 0});
    const std::string left = parts[draw[0] % parts.size()], right = parts[draw[1] % parts.size()];
    if (left.size() + right.size() > 6) continue;
    if (std::find(parts.begin(), parts.end(), left + right) != parts.end()) continue;
    merges.emplace_back(left, right);
    parts.push_back(left + right);
  }
  return merges;
}

TEST(ByteLevelTokenizer, RandomTextsAgreeWithTheSlowWay) {
  constexpr std::uint64_t kSeed = 20261130;
  const auto alphabet = base::Utf8ToCodePoints("aabb  1春\n昨e\u0301'").value();
  for (std::uint32_t trial = 0; trial < 90; ++trial) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", trial " << trial);
    const PreTokenizer pre = kAll[trial % 3];
    const auto tokenizer = Make(pre, RandomMerges(kSeed, trial));
    const VocabularySpec& spec = tokenizer->vocabulary().spec();
    for (std::uint32_t k = 0; k < 10; ++k) {
      const std::string given = RandomText(kSeed, 1000 + trial * 10 + k, k * 6, alphabet);
      const std::string text = pre == PreTokenizer::kQwen2 ? ToNfc(given) : given;
      Ids expected;
      for (std::string_view rest = text; !rest.empty();) {
        const std::string_view word = rest.substr(0, FirstWordBytes(pre, rest));
        const auto whole = tokenizer->vocabulary().FindPiece(word);
        const Ids ids = pre == PreTokenizer::kLlama3 && whole ? Ids{*whole} : SlowWord(spec, word);
        expected.insert(expected.end(), ids.begin(), ids.end());
        rest.remove_prefix(word.size());
      }
      ASSERT_EQ(tokenizer->Encode(given).value(), expected) << given;
      ExpectRoundTrip(*tokenizer, text);
    }
  }
}

// One word of a megabyte, merged in every way: seconds would mean a quadratic step.
TEST(ByteLevelTokenizer, LongWordsTakeTimeInProportion) {
  Merges merges;
  for (std::string part = "a"; part.size() < 64; part += part) merges.emplace_back(part, part);
  const std::string text(1 << 20, 'a');
  for (const PreTokenizer pre : kAll) {
    const auto tokenizer = Make(pre, merges);
    const auto start = std::chrono::steady_clock::now();
    const Ids ids = tokenizer->Encode(text).value();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    EXPECT_EQ(ids.size(), text.size() / 64);
    EXPECT_EQ(Decode(tokenizer->vocabulary(), ids).value(), text);
  }
}

}  // namespace
}  // namespace kvasir::tokenizer
