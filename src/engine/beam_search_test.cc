#include "engine/beam_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "constraints/acrostic.h"
#include "engine/engine_test_models.h"
#include "engine/generator.h"
#include "engine/last_logits.h"
#include "sampling/log_probs.h"

namespace kvasir::engine {
namespace {

constexpr std::string_view kCharacters = "春风花月江山，。";

struct World {
  tokenizer::Vocabulary vocabulary = VocabularyOf(kCharacters);
  std::unique_ptr<model::Gpt2Model> model = TinyGpt2(vocabulary.size(), 40);
  base::ThreadTeam team = base::ThreadTeam(1);

  GenerateRequest Request(std::string_view heads, std::size_t chars) const {
    GenerateRequest request;
    request.prompt = {*vocabulary.FindPiece("月"), *vocabulary.FindPiece("山")};
    request.constraint = constraints::MakeAcrosticMatcher(vocabulary, heads, chars).value();
    request.max_tokens = request.constraint->MaxRemainingTokens().value();
    return request;
  }
  std::vector<ChoiceResult> Search(const GenerateRequest& request, std::uint64_t width,
                                   const GeneratorOptions& options = {}) {
    return BeamSearch(*model, vocabulary, request, width, options, team).value();
  }
};

double Total(const ChoiceResult& choice) {
  double total = 0;
  for (const GeneratedToken& token : choice.tokens) total += token.logprob;
  return total;
}

TEST(BeamSearch, OneBeamIsGreedy) {
  World world;
  GenerateRequest request = world.Request("春花", 5);
  const auto found = world.Search(request, 1);
  ASSERT_EQ(found.size(), 1u);
  request.sampling.temperature = 0;
  const auto generator = Generator::Make(*world.model, world.vocabulary, world.team, {}).value();
  const auto report = generator->Run({&request, 1}).value();
  const ChoiceResult& greedy = report.results[0].choices[0];
  EXPECT_EQ(found[0].text, greedy.text);
  EXPECT_EQ(found[0].finish, FinishReason::kConstraint);
  ASSERT_EQ(found[0].tokens.size(), greedy.tokens.size());
  for (std::size_t i = 0; i < greedy.tokens.size(); ++i) {
    EXPECT_EQ(found[0].tokens[i].logprob, greedy.tokens[i].logprob);
  }
}

// A beam as wide as all beginnings finds the best of all texts.
TEST(BeamSearch, AWideBeamFindsTheBest) {
  World world;
  const GenerateRequest request = world.Request("春", 4);  // 6³ texts
  const auto found = world.Search(request, 216);
  ASSERT_EQ(found.size(), 216u);
  double best = -std::numeric_limits<double>::infinity();
  std::string best_text;
  const std::vector<std::string_view> characters = {"春", "风", "花", "月", "江", "山"};
  for (std::size_t i = 0; i < 216; ++i) {
    std::string text = "春";
    for (const std::size_t n : {i / 36, i / 6 % 6, i % 6}) text += characters[n];
    text += "。";
    std::vector<TokenId> tokens = request.prompt;
    double total = 0;
    for (std::size_t c = 0; c < 5; ++c) {
      const auto logits = LastLogits(*world.model, tokens, {}, world.team).value();
      tokens.push_back(*world.vocabulary.FindPiece(text.substr(3 * c, 3)));
      total += sampling::LogProb(logits, tokens.back()).value();
    }
    if (total > best) best = total, best_text = text;
  }
  EXPECT_EQ(found[0].text, best_text);
  EXPECT_NEAR(Total(found[0]), best, 1e-9);
  for (std::size_t i = 1; i < found.size(); ++i) {
    EXPECT_LE(Total(found[i]), Total(found[i - 1]) + 1e-12);
    EXPECT_NE(found[i].text, found[i - 1].text);
    EXPECT_EQ(found[i].index, i);
  }
}

// The cache and how the work is cut change nothing.
TEST(BeamSearch, OffEqualsOn) {
  World world;
  const GenerateRequest request = world.Request("春风月", 5);
  const auto found = world.Search(request, 7);
  ASSERT_EQ(found.size(), 7u);
  for (const GeneratorOptions& options :
       {GeneratorOptions{.use_cache = false}, GeneratorOptions{.block_tokens = 32},
        GeneratorOptions{.prefill_chunk = 1}, GeneratorOptions{.placement_seed = 5}}) {
    const auto other = world.Search(request, 7, options);
    ASSERT_EQ(other.size(), found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(other[i].text, found[i].text);
      for (std::size_t t = 0; t < found[i].tokens.size(); ++t) {
        EXPECT_EQ(other[i].tokens[t].logprob, found[i].tokens[t].logprob);
      }
    }
  }
}

TEST(BeamSearch, EndsAtItsLength) {
  World world;
  GenerateRequest request = world.Request("春风月", 5);
  request.max_tokens = 4;
  for (const ChoiceResult& choice : world.Search(request, 3)) {
    EXPECT_EQ(choice.tokens.size(), 4u);
    EXPECT_EQ(choice.finish, FinishReason::kLength);
  }
}

TEST(BeamSearch, RefusesWhatDoesNotFit) {
  World world;
  const auto refusal = [&](const GenerateRequest& request, std::uint64_t width) {
    const auto result = BeamSearch(*world.model, world.vocabulary, request, width, {}, world.team);
    EXPECT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
    return result.error().message;
  };
  GenerateRequest request = world.Request("春风月", 5);
  EXPECT_NE(refusal(request, 0).find("1 to 256"), std::string::npos);
  EXPECT_NE(refusal(request, kMaxBeams + 1).find("257"), std::string::npos);
  request.max_tokens = 39;
  EXPECT_NE(refusal(request, 2).find("context of 40"), std::string::npos);
  request.prompt.clear();
  EXPECT_FALSE(refusal(request, 2).empty());
}

TEST(BeamSearch, ReportsLogitsThatAreNotFinite) {
  World world;
  const ScriptedModel broken(world.vocabulary.size(), 40,
                             [](std::size_t position, TokenId, std::span<float> row) {
                               if (position == 3) row[0] = std::nanf("");
                             });
  const auto result =
      BeamSearch(broken, world.vocabulary, world.Request("春", 5), 2, {}, world.team);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, base::ErrorCode::kNumeric);
  EXPECT_NE(result.error().message.find("position 3"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::engine
