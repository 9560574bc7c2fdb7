#include "corpus/corpus_counts.h"

#include <gtest/gtest.h>

namespace kvasir::corpus {
namespace {

TEST(CorpusCounts, CountsCharactersNotBytes) {
  const CorpusCounts counts = CountCorpus("春风。\n春𭘵a\n").value();
  EXPECT_EQ(counts.lines, 2u);
  EXPECT_EQ(counts.characters, 8u);
  EXPECT_EQ(counts.distinct_characters, 6u);
}

TEST(CorpusCounts, EmptyTextHasNothing) {
  const CorpusCounts counts = CountCorpus("").value();
  EXPECT_EQ(counts.lines, 0u);
  EXPECT_EQ(counts.characters, 0u);
  EXPECT_EQ(counts.distinct_characters, 0u);
}

TEST(CorpusCounts, RefusesWhatIsNotUtf8) {
  const auto counts = CountCorpus("春\xff");
  ASSERT_FALSE(counts.has_value());
  EXPECT_EQ(counts.error().code, base::ErrorCode::kBadData);
  EXPECT_EQ(counts.error().message, "not valid UTF-8: byte 0xFF at offset 3");
}

TEST(CorpusCounts, CountsPhrases) {
  EXPECT_EQ(CountPhrase("春风。春风，春\n风", "春风"), 2u);
  EXPECT_EQ(CountPhrase("春风。春风，", "春风。"), 1u);
  EXPECT_EQ(CountPhrase("悠悠悠", "悠悠"), 2u);
  EXPECT_EQ(CountPhrase("春风", ""), 0u);
  EXPECT_EQ(CountPhrase("", "春"), 0u);
}

}  // namespace
}  // namespace kvasir::corpus
