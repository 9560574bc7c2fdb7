#include "tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/philox.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace kvasir::tokenizer {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

constexpr PreTokenizer kAll[] = {PreTokenizer::kGpt2, PreTokenizer::kLlama3, PreTokenizer::kQwen2};

Words Split(PreTokenizer kind, std::string_view text) {
  Words words;
  while (!text.empty()) {
    const std::size_t bytes = FirstWordBytes(kind, text);
    words.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return words;
}
Words Gpt2(std::string_view text) { return Split(PreTokenizer::kGpt2, text); }
Words Llama3(std::string_view text) { return Split(PreTokenizer::kLlama3, text); }
Words Qwen2(std::string_view text) { return Split(PreTokenizer::kQwen2, text); }

TEST(PreTokenizer, Names) {
  EXPECT_EQ(FindPreTokenizer("gpt-2"), PreTokenizer::kGpt2);
  EXPECT_EQ(FindPreTokenizer("gpt2"), PreTokenizer::kGpt2);
  EXPECT_EQ(FindPreTokenizer("llama-bpe"), PreTokenizer::kLlama3);
  EXPECT_EQ(FindPreTokenizer("llama3"), PreTokenizer::kLlama3);
  EXPECT_EQ(FindPreTokenizer("qwen2"), PreTokenizer::kQwen2);
  for (const char* other : {"", "default", "GPT-2", "qwen", "falcon"}) {
    EXPECT_EQ(FindPreTokenizer(other), std::nullopt) << other;
  }
  for (const PreTokenizer kind : kAll) EXPECT_EQ(FindPreTokenizer(PreTokenizerName(kind)), kind);
  EXPECT_EQ(PreTokenizerName(PreTokenizer::kGpt2), "gpt-2");
  EXPECT_EQ(PreTokenizerName(PreTokenizer::kLlama3), "llama-bpe");
}

TEST(PreTokenizer, WordsAndSpaces) {
  EXPECT_THAT(Gpt2("Hello world"), ElementsAre("Hello", " world"));
  EXPECT_THAT(Gpt2("a  b   "), ElementsAre("a", " ", " b", "   "));
  EXPECT_THAT(Gpt2("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(Gpt2("\tx"), ElementsAre("\t", "x"));
  EXPECT_THAT(Gpt2(" \u3000 春"), ElementsAre(" \u3000", " 春"));
  EXPECT_THAT(Gpt2("a\u3000\u3000b"), ElementsAre("a", "\u3000", "\u3000", "b"));
  EXPECT_THAT(Llama3("Hello world"), ElementsAre("Hello", " world"));
  EXPECT_THAT(Llama3("a  b   "), ElementsAre("a", " ", " b", "   "));
  EXPECT_THAT(Llama3("a\n\nb"), ElementsAre("a", "\n\n", "b"));
  EXPECT_THAT(Llama3("\tx"), ElementsAre("\tx"));
  EXPECT_THAT(Llama3("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(Llama3("a\r\n"), ElementsAre("a", "\r\n"));
  EXPECT_THAT(Llama3("\nx"), ElementsAre("\n", "x"));
  EXPECT_THAT(Llama3(" \u3000春"), ElementsAre(" ", "\u3000春"));
}

TEST(PreTokenizer, Contractions) {
  EXPECT_THAT(Gpt2("I'm you're we'll it's don't I'd I've"),
              ElementsAre("I", "'m", " you", "'re", " we", "'ll", " it", "'s", " don", "'t", " I",
                          "'d", " I", "'ve"));
  EXPECT_THAT(Gpt2("I'M 'x '"), ElementsAre("I", "'", "M", " '", "x", " '"));
  EXPECT_THAT(Gpt2("'r 'l"), ElementsAre("'", "r", " '", "l"));
  EXPECT_THAT(Llama3("I'M WE'LL 'Tis it'\u017F"),
              ElementsAre("I", "'M", " WE", "'LL", " '", "Tis", " it", "'\u017F"));
  EXPECT_THAT(Llama3("'Some 'x"), ElementsAre("'S", "ome", " '", "x"));
  EXPECT_THAT(Qwen2("x'Re"), ElementsAre("x", "'Re"));
}

TEST(PreTokenizer, NumbersAndPunctuation) {
  EXPECT_THAT(Gpt2("12345 678"), ElementsAre("12345", " 678"));
  EXPECT_THAT(Llama3("12345 678"), ElementsAre("123", "45", " ", "678"));
  EXPECT_THAT(Qwen2("12345 678"), ElementsAre("1", "2", "3", "4", "5", " ", "6", "7", "8"));
  EXPECT_THAT(Gpt2("x=y; // ok"), ElementsAre("x", "=", "y", ";", " //", " ok"));
  EXPECT_THAT(Gpt2("!!\n\n"), ElementsAre("!!", "\n\n"));
  EXPECT_THAT(Llama3("!!\n\nx"), ElementsAre("!!\n\n", "x"));
  EXPECT_THAT(Llama3("x=y (ok) ..."), ElementsAre("x", "=y", " (", "ok", ")", " ..."));
  EXPECT_THAT(Llama3("²x٣"), ElementsAre("²", "x", "٣"));
  EXPECT_THAT(Llama3("春风。花月\U0001F409"), ElementsAre("春风", "。花月", "\U0001F409"));
  EXPECT_THAT(Gpt2("e\u0301x"), ElementsAre("e", "\u0301", "x"));  // A mark is no letter.
  EXPECT_THAT(Llama3("e\u0301x"), ElementsAre("e", "\u0301x"));
}

// The regular expression itself, alternative by alternative, matched by backtracking: slow and
// obvious. Each function gives the ends a part can reach from `at`, the preferred first.
class Oracle {
 public:
  Oracle(PreTokenizer kind, std::vector<std::uint32_t> text)
      : kind_(kind), text_(std::move(text)) {}

  std::size_t End(std::size_t at) const {
    return kind_ == PreTokenizer::kGpt2 ? Gpt2End(at) : Llama3End(at);
  }
  std::size_t size() const { return text_.size(); }

 private:
  bool Is(std::size_t at, CharacterClass type) const {
    return at < size() && ClassOf(text_[at]) == type;
  }
  bool Letter(std::size_t at) const { return Is(at, CharacterClass::kLetter); }
  bool Number(std::size_t at) const { return Is(at, CharacterClass::kNumber); }
  bool Space(std::size_t at) const { return Is(at, CharacterClass::kSpace); }
  bool Other(std::size_t at) const { return Is(at, CharacterClass::kOther); }
  bool Newline(std::size_t at) const {
    return at < size() && (text_[at] == '\r' || text_[at] == '\n');
  }
  bool Literal(std::size_t at, std::string_view word) const {
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (at + i >= size()) return false;
      std::uint32_t c = text_[at + i];
      if (kind_ != PreTokenizer::kGpt2 && c >= 'A' && c <= 'Z') c += 32;
      if (kind_ != PreTokenizer::kGpt2 && c == 0x17F) c = 's';
      if (c != static_cast<unsigned char>(word[i])) return false;
    }
    return true;
  }
  template <typename Test>
  std::size_t Run(std::size_t at, const Test& test, std::size_t most = 1u << 30) const {
    while (most-- > 0 && test(at)) ++at;
    return at;
  }
  std::size_t Contraction(std::size_t at) const {
    for (const char* word : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (Literal(at, word)) return at + std::string_view(word).size();
    }
    return at;
  }
  // \s+(?!\S)|\s+
  std::size_t Spaces(std::size_t at) const {
    const std::size_t all = Run(at, [&](std::size_t i) { return Space(i); });
    for (std::size_t end = all; end > at; --end) {
      if (end == size() || Space(end)) return end;
    }
    return all;
  }
  std::size_t Gpt2End(std::size_t at) const {
    if (Contraction(at) > at) return Contraction(at);
    const std::size_t lead = text_[at] == ' ' ? at + 1 : at;
    for (const auto type :
         {CharacterClass::kLetter, CharacterClass::kNumber, CharacterClass::kOther}) {
      const std::size_t end = Run(lead, [&](std::size_t i) { return Is(i, type); });
      if (end > lead) return end;
    }
    return Spaces(at);
  }
  std::size_t Llama3End(std::size_t at) const {
    if (Contraction(at) > at) return Contraction(at);
    const auto letter = [&](std::size_t i) { return Letter(i); };
    if (!Newline(at) && !Letter(at) && !Number(at) && Letter(at + 1)) return Run(at + 1, letter);
    if (Letter(at)) return Run(at, letter);
    if (Number(at)) {
      return Run(
          at, [&](std::size_t i) { return Number(i); }, kind_ == PreTokenizer::kLlama3 ? 3 : 1);
    }
    for (const std::size_t lead : {text_[at] == ' ' ? at + 1 : at, at}) {
      const std::size_t end = Run(lead, [&](std::size_t i) { return Other(i); });
      if (end > lead) return Run(end, [&](std::size_t i) { return Newline(i); });
    }
    // \s*[\r\n]+
    for (std::size_t end = Run(at, [&](std::size_t i) { return Space(i); });; --end) {
      if (Newline(end)) return Run(end, [&](std::size_t i) { return Newline(i); });
      if (end == at) break;
    }
    return Spaces(at);
  }

  PreTokenizer kind_;
  std::vector<std::uint32_t> text_;
};

TEST(PreTokenizer, RandomTextsAgreeWithTheRegularExpression) {
  constexpr std::uint64_t kSeed = 20261130;
  const auto alphabet =
      base::Utf8ToCodePoints("  \n\r\t\u3000''stmdrevlSTLx春é\u017F12²!.-\u0301\U0001F409").value();
  for (const PreTokenizer kind : kAll) {
    for (std::uint32_t trial = 0; trial < 20'000; ++trial) {
      std::string text;
      std::vector<std::uint32_t> points;
      for (std::uint32_t i = 0; i < 1 + trial % 12; ++i) {
        const auto random = base::Philox4x32(kSeed, {trial, i, 0, 0});
        points.push_back(alphabet[random[0] % alphabet.size()]);
        base::AppendUtf8(points.back(), text);
      }
      const Oracle oracle(kind, points);
      Words expected;
      for (std::size_t at = 0; at < oracle.size();) {
        const std::size_t end = oracle.End(at);
        expected.emplace_back();
        for (; at < end; ++at) base::AppendUtf8(points[at], expected.back());
      }
      ASSERT_EQ(Split(kind, text), expected) << text << ", seed " << kSeed << ", trial " << trial;
    }
  }
}

// Long runs of each kind take time in proportion.
TEST(PreTokenizer, LongRuns) {
  for (const char* unit : {"a", " ", "\n", "!", "1", "'", " \n", "\u0301", "' "}) {
    std::string text;
    while (text.size() < 300'000) text += unit;
    for (const PreTokenizer kind : kAll) {
      std::string joined;
      for (const std::string& word : Split(kind, text)) joined += word;
      ASSERT_EQ(joined, text);
    }
  }
}

}  // namespace
}  // namespace kvasir::tokenizer
