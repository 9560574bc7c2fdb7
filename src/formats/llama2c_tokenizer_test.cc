#include "formats/llama2c_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "formats/raw_llama2c.h"

namespace kvasir::formats {
namespace {

using base::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Refusal(const RawBytes& bytes) {
  const auto tokenizer = ParseLlama2cTokenizer(bytes, "bad.bin");
  if (tokenizer) return "";
  EXPECT_EQ(tokenizer.error().code, ErrorCode::kBadData);
  EXPECT_THAT(tokenizer.error().message, HasSubstr("bad.bin: "));
  return tokenizer.error().message;
}

TEST(Llama2cTokenizer, PiecesAndScores) {
  const RawBytes bytes =
      RawLlama2cTokenizer(7, {{"<unk>", 0}, {"\n<s>\n", 0}, {" 春", -1.5F}, {"", 2}, {"\xFF", -3}});
  const auto tokenizer = ParseLlama2cTokenizer(bytes, "tok.bin").value();
  EXPECT_THAT(tokenizer.pieces, ElementsAre("<unk>", "\n<s>\n", " 春", "", "\xFF"));
  EXPECT_THAT(tokenizer.scores, ElementsAre(0, 0, -1.5F, 2, -3));
}

TEST(Llama2cTokenizer, RefusesWhatIsNone) {
  EXPECT_THAT(Refusal({}), HasSubstr("the length of the longest token"));
  EXPECT_THAT(Refusal(RawLlama2cTokenizer(7, {})), HasSubstr("holds no token"));
  for (const std::int32_t longest : {0, -1, std::numeric_limits<std::int32_t>::min()}) {
    EXPECT_THAT(Refusal(RawLlama2cTokenizer(longest, {{"a", 0}})),
                HasSubstr("its longest token has " + std::to_string(longest)));
  }
  EXPECT_THAT(Refusal(RawLlama2cTokenizer(2, {{"a", 0}, {"abc", 0}})),
              HasSubstr("token 1 has 3 bytes, must have 0 to 2"));
  RawBytes negative = RawLlama2cTokenizer(2, {});
  AppendRaw<float>(negative, 0);
  AppendRaw<std::int32_t>(negative, -5);
  EXPECT_THAT(Refusal(negative), HasSubstr("token 0 has -5 bytes"));
  RawBytes huge = RawLlama2cTokenizer(std::numeric_limits<std::int32_t>::max(), {{"a", 0}});
  AppendRaw<float>(huge, 0);
  AppendRaw<std::int32_t>(huge, std::numeric_limits<std::int32_t>::max());
  EXPECT_THAT(Refusal(huge), HasSubstr("takes 2147483647 bytes, but 0 are left"));
}

// A file cut between two tokens is a shorter vocabulary; anywhere else it is refused.
TEST(Llama2cTokenizer, CutFiles) {
  const RawBytes whole = RawLlama2cTokenizer(7, {{"ab", 0}, {"cde", 0}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto tokenizer = ParseLlama2cTokenizer(std::span(whole).first(size), "cut.bin");
    EXPECT_EQ(tokenizer.has_value(), size == 14) << size;
  }
}

}  // namespace
}  // namespace kvasir::formats
