#include "tokenizer/pre_tokenizer_regex.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::tokenizer {
namespace {

TEST(PreTokenizerRegex, EachKindIsFoundByItsOwnAndNoOther) {
  for (const PreTokenizer kind :
       {PreTokenizer::kGpt2, PreTokenizer::kLlama3, PreTokenizer::kQwen2}) {
    const std::string regex(PreTokenizerRegex(kind));
    EXPECT_EQ(FindPreTokenizerByRegex(regex), kind);
    EXPECT_EQ(FindPreTokenizerByRegex(regex + " "), std::nullopt);
    EXPECT_EQ(FindPreTokenizerByRegex(regex.substr(1)), std::nullopt);
  }
  EXPECT_EQ(FindPreTokenizerByRegex(""), std::nullopt);
}

TEST(PreTokenizerRegex, AreThePublishedOnes) {
  EXPECT_EQ(FindPreTokenizerByRegex(
                "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"),
            PreTokenizer::kLlama3);
}

}  // namespace
}  // namespace kvasir::tokenizer
