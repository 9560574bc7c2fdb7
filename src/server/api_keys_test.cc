#include "server/api_keys.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server {
namespace {

TEST(EqualInConstantTime, IsEquality) {
  EXPECT_TRUE(EqualInConstantTime("", ""));
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualInConstantTime("abc", "ab"));
  EXPECT_FALSE(EqualInConstantTime("abc", std::string("abc\0", 4)));
  const std::string longest(kMaxKeyBytes, 'k');
  EXPECT_TRUE(EqualInConstantTime(longest, longest));
  EXPECT_FALSE(EqualInConstantTime(longest + "k", longest + "k"));
  EXPECT_FALSE(EqualInConstantTime(longest, longest + "k"));
}

TEST(ApiKeys, FindsAKeyByItsHeader) {
  const auto keys = ApiKeys::Parse("# people\nabcdefghijklmnop\r\n\n0123456789abcdef\n", "f");
  ASSERT_TRUE(keys) << keys.error().message;
  EXPECT_FALSE(keys.value().empty());
  EXPECT_EQ(keys.value().Find("Bearer abcdefghijklmnop"), 0u);
  EXPECT_EQ(keys.value().Find("Bearer 0123456789abcdef"), 1u);
  for (const char* header : {"", "Bearer", "Bearer ", "abcdefghijklmnop", "bearer abcdefghijklmnop",
                             "Bearer abcdefghijklmnoq", "Bearer abcdefghijklmnop "}) {
    EXPECT_FALSE(keys.value().Find(header)) << header;
  }
}

TEST(ApiKeys, RefusesFilesWithoutTellingKeys) {
  for (const char* text : {"", "# none\n", "short\n", "abcdefghijklmno p\n"}) {
    const auto keys = ApiKeys::Parse(text, "keys.txt");
    ASSERT_FALSE(keys) << text;
    EXPECT_NE(keys.error().message.find("keys.txt"), std::string::npos);
    EXPECT_EQ(keys.error().message.find("short"), std::string::npos);
  }
  EXPECT_FALSE(ApiKeys::Parse(std::string(kMaxKeyBytes + 1, 'k'), "f"));
  EXPECT_FALSE(ApiKeys::Read(base::Env::Default(), "/nonexistent/keys"));
}

}  // namespace
}  // namespace kvasir::server
