#include "eval/engine_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "eval/random_gpt2.h"

namespace kvasir::eval {
namespace {

TEST(EngineSpeedTest, PlainVocabulariesHaveTheSizeAskedFor) {
  for (const std::uint64_t size : {300u, 6289u, 50'257u}) {
    const auto vocabulary = MakePlainVocabulary(size);
    ASSERT_TRUE(vocabulary) << vocabulary.error().message;
    EXPECT_EQ(vocabulary.value().size(), size);
    std::set<std::string> pieces;
    for (base::TokenId id = 0; id < size; ++id) pieces.insert(vocabulary.value().piece(id));
    EXPECT_EQ(pieces.size(), size);
  }
}

TEST(EngineSpeedTest, MeasuresAndChecks) {
  const auto model = MakeRandomGpt2({.layers = 2,
                                     .heads = 2,
                                     .embedding = 32,
                                     .feed_forward = 64,
                                     .context = 40,
                                     .vocab = 400},
                                    1)
                         .value();
  const auto vocabulary = MakePlainVocabulary(400).value();
  base::ThreadTeam team(2);
  const auto speed = MeasureEngine(*model, vocabulary, 5, {.tokens = 24, .repetitions = 2}, team);
  ASSERT_TRUE(speed) << speed.error().message;
  EXPECT_GT(speed.value().tokens_per_s, 0);
  EXPECT_GT(speed.value().first_token_ms, 0);
  EXPECT_GE(speed.value().ms_per_step, 0);
  const auto long_text = MeasureEngine(*model, vocabulary, 5, {.tokens = 25}, team);
  ASSERT_FALSE(long_text);
  EXPECT_THAT(long_text.error().message, ::testing::HasSubstr("context of 40"));
  const auto foreign =
      MeasureEngine(*model, MakePlainVocabulary(401).value(), 5, {.tokens = 5}, team);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, base::ErrorCode::kUsage);
}

}  // namespace
}  // namespace kvasir::eval
