#include "tokenizer/byte_pair_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_test_vocabularies.h"

namespace kvasir::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

VocabularySpec Train(std::string_view text, const BytePairOptions& options = {}) {
  return TrainBytePairs(std::span(&text, 1), options).value();
}

std::vector<TokenId> Encode(const VocabularySpec& spec, std::string_view text) {
  return MakeTokenizer(Vocabulary::Make(spec).value()).value()->Encode(text).value();
}

// The definition, step by step: count all pairs of all words anew, merge the best everywhere.
struct SlowBytePairs {
  std::vector<std::string> merges;
  std::vector<TokenId> tokens;  // Of the text, in the end.

  SlowBytePairs(std::string_view text, const BytePairOptions& options) {
    std::vector<std::vector<TokenId>> words;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t bytes = FirstWordBytes(options.pre, text.substr(at));
      words.emplace_back();
      for (const char c : text.substr(at, bytes)) words.back().push_back(static_cast<uint8_t>(c));
      at += bytes;
    }
    std::vector<std::string> bytes;
    for (int b = 0; b < 256; ++b) bytes.emplace_back(1, static_cast<char>(b));
    while (bytes.size() + 1 < options.vocabulary) {
      std::map<std::pair<TokenId, TokenId>, int> counts;
      for (const auto& word : words) {
        for (std::size_t i = 1; i < word.size(); ++i) ++counts[{word[i - 1], word[i]}];
      }
      const std::set<std::string> known(bytes.begin(), bytes.end());
      std::pair<TokenId, TokenId> best;
      int most = 1;
      for (const auto& [pair, count] : counts) {  // Ascending: the first of equals stays.
        if (count <= most || known.contains(bytes[pair.first] + bytes[pair.second])) continue;
        best = pair;
        most = count;
      }
      if (most < 2) break;
      const auto id = static_cast<TokenId>(bytes.size());
      for (auto& word : words) {
        std::vector<TokenId> merged;
        for (std::size_t i = 0; i < word.size(); ++i) {
          const bool here =
              i + 1 < word.size() && word[i] == best.first && word[i + 1] == best.second;
          merged.push_back(here ? id : word[i]);
          i += here;
        }
        word = merged;
      }
      bytes.push_back(bytes[best.first] + bytes[best.second]);
      merges.push_back(PieceOfBytes(bytes[best.first]) + " " + PieceOfBytes(bytes[best.second]));
    }
    for (const auto& word : words) tokens.insert(tokens.end(), word.begin(), word.end());
  }
};

TEST(BytePairTrainerTest, AgreesWithTheDefinition) {
  const std::vector<std::uint32_t> alphabets[] = {{'a', 'b'},
                                                  {'a', 'b', 'c', ' ', ' '},
                                                  {0x6625, 0x98CE, 0xFF0C, '\n'},
                                                  {'a', '1', '\'', 's', ' '}};
  std::uint32_t trial = 0;
  std::size_t merges = 0;
  for (const auto& alphabet : alphabets) {
    for (const std::size_t characters : {1, 2, 3, 10, 50, 400}) {
      for (const PreTokenizer pre : {PreTokenizer::kGpt2, PreTokenizer::kLlama3}) {
        const std::string text = RandomText(1, ++trial, characters, alphabet);
        const BytePairOptions options = {.vocabulary = 257 + 40, .pre = pre};
        const VocabularySpec spec = Train(text, options);
        const SlowBytePairs slow(text, options);
        ASSERT_EQ(spec.merges, slow.merges) << "trial " << trial;
        if (pre == PreTokenizer::kGpt2) {
          EXPECT_EQ(Encode(spec, text), slow.tokens) << "trial " << trial;
        }
        const auto tokenizer = MakeTokenizer(Vocabulary::Make(spec).value()).value();
        const std::string other = RandomText(2, trial, 100, alphabet);
        EXPECT_EQ(Decode(tokenizer->vocabulary(), tokenizer->Encode(other).value()).value(), other);
        merges += spec.merges.size();
      }
    }
  }
  EXPECT_GT(merges, 250u);
}

TEST(BytePairTrainerTest, TheOrderOfTokensIsBytesMergesEnd) {
  const VocabularySpec spec = Train("low low low lower");
  EXPECT_EQ(spec.kind, VocabularyKind::kByteLevel);
  EXPECT_EQ(spec.pre, PreTokenizer::kGpt2);
  // "lo" and "ow" occur 4 times each, "Ġl" 3 times; l is 108, o is 111.
  EXPECT_THAT(spec.merges, ElementsAre("l o", "lo w", "Ġ low"));
  ASSERT_EQ(spec.pieces.size(), 256u + 3 + 1);
  EXPECT_EQ(spec.pieces['l'], "l");
  EXPECT_EQ(spec.pieces[' '], "Ġ");
  EXPECT_THAT(std::vector(spec.pieces.begin() + 256, spec.pieces.end()),
              ElementsAre("lo", "low", "Ġlow", "<|endoftext|>"));
  EXPECT_EQ(spec.types[258], TokenType::kNormal);
  EXPECT_EQ(spec.types[259], TokenType::kControl);
  EXPECT_EQ(spec.bos, 259u);
  EXPECT_EQ(spec.eos, 259u);
  EXPECT_FALSE(spec.add_bos);
  EXPECT_THAT(Encode(spec, "low lower<|endoftext|>"),
              ElementsAre(257, 258, 'e', 'r', '<', '|', 'e', 'n', 'd', 'o', 'f', 't', 'e', 'x', 't',
                          '|', '>'));
}

TEST(BytePairTrainerTest, TiesGoToTheLowerIds) {
  EXPECT_THAT(Train("cd cd ab ab", {.vocabulary = 258}).merges, ElementsAre("Ġ a"));
  EXPECT_THAT(Train("ca,ca?ba,ba?", {.vocabulary = 258}).merges, ElementsAre("b a"));
  EXPECT_THAT(Train("bc,bc?ba,ba?", {.vocabulary = 258}).merges, ElementsAre("b a"));
}

TEST(BytePairTrainerTest, NoPieceIsMadeTwice) {
  const std::string text = RandomText(3, 1, 3000, std::vector<std::uint32_t>{'a', 'b', 'c'});
  const VocabularySpec spec = Train(text, {.vocabulary = 1000});
  const std::set<std::string> pieces(spec.pieces.begin(), spec.pieces.end());
  EXPECT_EQ(pieces.size(), spec.pieces.size());
  EXPECT_GT(spec.merges.size(), 100u);
}

TEST(BytePairTrainerTest, NothingIsLearnedOfWhatOccursOnce) {
  EXPECT_TRUE(Train("abc").merges.empty());
  EXPECT_TRUE(Train("a").merges.empty());
  EXPECT_THAT(Train("abcab").merges, ElementsAre("a b"));
}

TEST(BytePairTrainerTest, TheVocabularyIsNoLargerThanAsked) {
  const std::string text = RandomText(4, 1, 5000, std::vector<std::uint32_t>{'a', 'b', 'c', ' '});
  EXPECT_EQ(Train(text, {.vocabulary = 257}).pieces.size(), 257u);
  EXPECT_EQ(Train(text, {.vocabulary = 300}).pieces.size(), 300u);
  // What a smaller one learns is where a larger one begins.
  const auto small = Train(text, {.vocabulary = 300}).merges;
  const auto large = Train(text, {.vocabulary = 400}).merges;
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
}

TEST(BytePairTrainerTest, NeitherOrderNorCutOfTextsMatters) {
  const std::string_view parts[] = {"the cat ", "sat on ", "the mat "};
  const std::string_view turned[] = {"sat on ", "the mat ", "the cat "};
  const auto merges = TrainBytePairs(parts, {}).value().merges;
  EXPECT_EQ(TrainBytePairs(turned, {}).value().merges, merges);
  EXPECT_FALSE(merges.empty());
}

// A word as long as the text, of overlapping pairs: time must not grow with its square.
TEST(BytePairTrainerTest, AVeryLongWord) {
  const std::string text(1 << 18, 'a');
  const VocabularySpec spec = Train(text);
  ASSERT_EQ(spec.merges.size(), 17u);  // Pieces of 2, 4, …, 2^17; of 2^18 there is but one.
  EXPECT_EQ(Encode(spec, text), (std::vector<TokenId>{256 + 16, 256 + 16}));
}

TEST(BytePairTrainerTest, RefusesWhatItCannotUse) {
  const auto error = [](std::vector<std::string_view> texts, const BytePairOptions& options) {
    return TrainBytePairs(texts, options).error();
  };
  for (const std::size_t size : {std::size_t{0}, std::size_t{256}, kMaxBytePairVocabulary + 1}) {
    EXPECT_EQ(error({"a"}, {.vocabulary = size}).code, base::ErrorCode::kUsage);
    EXPECT_THAT(error({"a"}, {.vocabulary = size}).message, HasSubstr("257 to 1048576"));
  }
  EXPECT_EQ(error({"a"}, {.pre = PreTokenizer::kQwen2}).code, base::ErrorCode::kUsage);
  EXPECT_THAT(error({"a", "bc\xFF"}, {}).message,
              HasSubstr("text 2 of 2 is not UTF-8: byte 0xFF at offset 2"));
  EXPECT_EQ(error({}, {}).code, base::ErrorCode::kBadData);
  EXPECT_EQ(error({"", ""}, {}).code, base::ErrorCode::kBadData);
}

}  // namespace
}  // namespace kvasir::tokenizer
