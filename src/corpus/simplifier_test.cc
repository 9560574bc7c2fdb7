#include "corpus/simplifier.h"

#include <gtest/gtest.h>

namespace kvasir::corpus {
namespace {

TEST(Simplifier, SimplifiesAndLeavesTheRest) {
  const Simplifier simplifier = Simplifier::Open("t2s.json").value();
  EXPECT_EQ(simplifier.Convert("春風，夢裏花落知多少。").value(), "春风，梦里花落知多少。");
  EXPECT_EQ(simplifier.Convert("").value(), "");
  EXPECT_EQ(simplifier.Convert("abc 🐉\n").value(), "abc 🐉\n");
}

TEST(Simplifier, NeverThrowsOnBadText) {
  const Simplifier simplifier = Simplifier::Open("t2s.json").value();
  for (const char* text : {"\xff", "春\x80", "\xE6\x98", "\xF0\x9F"}) {
    const auto converted = simplifier.Convert(text);
    if (!converted) {
      EXPECT_EQ(converted.error().code, base::ErrorCode::kBadData);
    }
  }
}

TEST(Simplifier, MissingConfigurationIsNamed) {
  const auto simplifier = Simplifier::Open("no-such-config.json");
  ASSERT_FALSE(simplifier.has_value());
  EXPECT_EQ(simplifier.error().code, base::ErrorCode::kIo);
  EXPECT_NE(simplifier.error().message.find("'no-such-config.json'"), std::string::npos);
  EXPECT_EQ(simplifier.error().message.find('\n'), std::string::npos);
  EXPECT_NE(simplifier.error().hint.find("libopencc-data"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::corpus
