#include "server/next_answer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/engine_test_models.h"

namespace kvasir::server {
namespace {

TEST(NextTable, BeforeAndAfterTheSettings) {
  const std::vector<float> logits = {0, 1, 2, 3};
  const auto table = MakeNextTable(logits, {.temperature = 0.5f, .top_k = 2}, 3, nullptr);
  ASSERT_TRUE(table);
  ASSERT_EQ(table.value().tokens.size(), 3u);
  EXPECT_EQ(table.value().candidates, 2u);
  EXPECT_EQ(table.value().tokens[0].model.id, 3u);
  const double e1 = std::exp(-1.0), e2 = std::exp(-2.0), e3 = std::exp(-3.0);
  const double all = 1 + e1 + e2 + e3;
  EXPECT_NEAR(table.value().tokens[0].model.prob, 1 / all, 1e-6);
  EXPECT_NEAR(table.value().tokens[1].model.prob, e1 / all, 1e-6);
  EXPECT_NEAR(table.value().shown, (1 + e1 + e2) / all, 1e-6);
  // Twice the distance between logits, and only two left.
  EXPECT_NEAR(table.value().tokens[0].drawn, 1 / (1 + e2), 1e-6);
  EXPECT_NEAR(table.value().tokens[1].drawn, e2 / (1 + e2), 1e-6);
  EXPECT_EQ(table.value().tokens[2].drawn, 0);
}

TEST(NextTable, GreedyAndMasked) {
  const std::vector<float> logits = {0, 1, 2, 3};
  base::TokenMask drawable(4);
  drawable.Allow(0);
  drawable.Allow(1);
  const auto greedy = MakeNextTable(logits, {.temperature = 0}, 4, &drawable);
  ASSERT_TRUE(greedy);
  EXPECT_EQ(greedy.value().candidates, 1u);
  EXPECT_EQ(greedy.value().tokens[2].model.id, 1u);
  EXPECT_EQ(greedy.value().tokens[2].drawn, 1);
  EXPECT_EQ(greedy.value().tokens[0].drawn, 0);  // The most probable may not be drawn.
  const auto all = MakeNextTable(logits, {.temperature = 1}, 9, nullptr);
  ASSERT_TRUE(all);
  EXPECT_EQ(all.value().tokens.size(), 4u);
  for (const NextToken& token : all.value().tokens) {
    EXPECT_NEAR(token.drawn, token.model.prob, 1e-6);
  }
}

TEST(NextTable, RefusesWhatIsNoDistribution) {
  const std::vector<float> logits = {0, std::nanf("")};
  EXPECT_FALSE(MakeNextTable(logits, {}, 2, nullptr));
  EXPECT_FALSE(MakeNextTable(std::vector<float>{0, 1}, {.top_k = 3}, 2, nullptr));
}

TEST(ReadNextCall, TypesAndNames) {
  const auto read = [](const char* body) { return ReadNextCall(ParseBody(body).value()); };
  EXPECT_EQ(read(R"({"prompt":"a"})").value().top, 20u);
  EXPECT_EQ(read(R"({"prompt":[1,2],"top":5,"temperature":2})").value().prompt.ids->size(), 2u);
  EXPECT_FALSE(read(R"({})"));
  EXPECT_FALSE(read(R"({"prompt":["a","b"]})"));
  EXPECT_FALSE(read(R"({"prompt":"a","top":0})"));
  EXPECT_FALSE(read(R"({"prompt":"a","n":1})"));
}

TEST(NextAnswer, IsCompleteOnceTheRowIsThere) {
  const auto vocabulary = engine::VocabularyOf("ab");
  base::TokenMask drawable(vocabulary.size());
  drawable.SetAll();
  const auto answer = std::make_shared<NextAnswer>(NextCall{}, "m", vocabulary, drawable);
  EXPECT_TRUE(answer->wants_logits());
  EXPECT_FALSE(answer->complete());
  std::vector<float> row(vocabulary.size(), 0.0f);
  row[*vocabulary.FindPiece("b")] = 20;
  answer->Take({answer, 0, LogitsNews{row}});
  ASSERT_TRUE(answer->complete());
  const auto body = answer->Body();
  ASSERT_TRUE(body);
  EXPECT_NE(body.value().find(R"("tokens":[{"token":"b","id":)"), std::string::npos)
      << body.value();
}

}  // namespace
}  // namespace kvasir::server
