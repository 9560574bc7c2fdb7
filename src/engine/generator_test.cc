#include "engine/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "base/utf8.h"
#include "constraints/acrostic.h"
#include "constraints/verse_form.h"
#include "engine/engine_test_models.h"

namespace kvasir::engine {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kCharacters = "\n。，春眠不觉晓处闻啼鸟夜来风雨声花落知多少";
constexpr std::uint64_t kContext = 40;

// Everything that must not depend on how the work is arranged, as bits.
struct Outcome {
  std::map<std::pair<std::size_t, std::uint32_t>, std::string> texts;
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<TokenId>> tokens;
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<std::uint64_t>> logprobs;
  std::map<std::tuple<std::size_t, std::uint32_t, std::size_t>, std::uint64_t> logits;  // hashes
  std::vector<FinishReason> finish;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

class GeneratorTest : public ::testing::Test {
 protected:
  GeneratorTest()
      : vocabulary_(VocabularyOf(kCharacters)), model_(TinyGpt2(vocabulary_.size(), kContext)) {}

  TokenId Id(std::string_view piece) const { return vocabulary_.FindPiece(piece).value(); }

  std::vector<TokenId> Ids(std::string_view text) const {
    std::vector<TokenId> ids;
    for (const std::string_view c : base::SplitCharacters(text)) ids.push_back(Id(c));
    return ids;
  }

  // A prompt of this many tokens, which differ by salt.
  std::vector<TokenId> PromptOf(std::size_t tokens, std::size_t salt = 0) const {
    std::vector<TokenId> ids;
    const std::size_t first = Id("\n");
    for (std::size_t i = 0; i < tokens; ++i) {
      ids.push_back(
          static_cast<TokenId>(first + (i * 7 + salt * 3 + 1) % (vocabulary_.size() - first)));
    }
    return ids;
  }

  std::vector<GenerateRequest> MixedRequests() const {
    std::vector<GenerateRequest> requests(6);
    requests[0] = {.prompt = PromptOf(1), .max_tokens = 30, .seed = 42};
    requests[1] = {.prompt = PromptOf(17, 1), .max_tokens = 9, .seed = 7, .choices = 3};
    requests[1].sampling.top_k = 4;
    requests[2] = {.prompt = PromptOf(33, 2), .max_tokens = 100, .seed = 7};
    requests[2].sampling.temperature = 0;
    requests[3] = {.prompt = Ids("\n"), .max_tokens = 100, .seed = 9, .choices = 2};
    requests[3].constraint =
        constraints::MakeVerseMatcher(vocabulary_, constraints::VerseForm::kWujue, "春夜花落")
            .value();
    requests[4] = {.prompt = PromptOf(15, 4), .max_tokens = 12, .seed = 3};
    requests[4].sampling.repeat_penalty = 1.5f;
    requests[4].sampling.top_p = 0.8f;
    requests[4].stops = {"春", "。，"};
    requests[5] = {.prompt = PromptOf(16, 5), .max_tokens = 0, .seed = 1};
    return requests;
  }

  Outcome RunAll(const std::vector<GenerateRequest>& requests, const GeneratorOptions& options,
                 std::size_t threads = 1, GenerateReport* out = nullptr) const {
    base::ThreadTeam team(threads);
    auto generator = Generator::Make(*model_, vocabulary_, team, options);
    EXPECT_TRUE(generator) << generator.error().message;
    Outcome outcome;
    std::map<std::pair<std::size_t, std::uint32_t>, std::string> streamed;
    Observer observer;
    observer.on_logits = [&](const LogitsEvent& e) {
      outcome.logits[{e.request, e.choice, e.position}] = base::HashSpan64(e.row);
    };
    observer.on_token = [&](const TokenEvent& e) -> base::Result<void> {
      streamed[{e.request, e.choice}] += e.text;
      return base::Success();
    };
    auto report = generator.value()->Run(requests, observer);
    EXPECT_TRUE(report) << report.error().message;
    if (!report) return outcome;
    for (std::size_t r = 0; r < requests.size(); ++r) {
      for (const ChoiceResult& choice : report.value().results[r].choices) {
        const std::pair key(r, choice.index);
        outcome.texts[key] = choice.text;
        EXPECT_EQ(streamed[key], choice.text);
        for (const GeneratedToken& token : choice.tokens) {
          outcome.tokens[key].push_back(token.id);
          outcome.logprobs[key].push_back(std::bit_cast<std::uint64_t>(token.logprob));
        }
        outcome.finish.push_back(choice.finish);
      }
    }
    if (out != nullptr) *out = std::move(report.value());
    return outcome;
  }

  tokenizer::Vocabulary vocabulary_;
  std::unique_ptr<model::Gpt2Model> model_;
};

// Promises 1 to 5 of the numerics contract, on requests that mix everything.
TEST_F(GeneratorTest, BitsDoNotDependOnTheArrangement) {
  const std::vector<GenerateRequest> requests = MixedRequests();
  const Outcome plain = RunAll(requests, {.max_batch = 1});
  ASSERT_GT(plain.logits.size(), 100u);
  const std::vector<GeneratorOptions> arrangements = {
      {},
      {.use_cache = false},
      {.use_cache = false, .prefill_chunk = 3, .max_batch = 2},
      {.block_tokens = 32, .prefill_chunk = 1},
      {.block_tokens = 64, .prefill_chunk = 5, .max_batch = 3},
      {.prefill_chunk = 16, .max_batch = 4, .step_tokens = 20},
      {.max_batch = 5, .step_tokens = 1},
      {.use_cache = false, .max_batch = 2, .step_tokens = 7},
      {.block_tokens = 256, .prefill_chunk = 1000000, .step_tokens = 33},
      {.max_batch = 3, .placement_seed = 5},
      {.prefill_chunk = 2, .max_batch = 32, .placement_seed = 6}};
  for (std::size_t i = 0; i < arrangements.size(); ++i) {
    EXPECT_TRUE(RunAll(requests, arrangements[i]) == plain) << "arrangement " << i;
  }
  EXPECT_TRUE(RunAll(requests, {}, 2) == plain);
  EXPECT_TRUE(RunAll(requests, {.prefill_chunk = 4}, 3) == plain);
}

// Cases C07, C21: alone or with any neighbours, in any order.
TEST_F(GeneratorTest, NeighboursChangeNothing) {
  const std::vector<GenerateRequest> requests = MixedRequests();
  const Outcome together = RunAll(requests, {});
  std::vector<GenerateRequest> reversed(requests.rbegin(), requests.rend());
  const Outcome backwards = RunAll(reversed, {.max_batch = 3});
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const Outcome alone = RunAll({requests[r]}, {});
    for (std::uint32_t c = 0; c < requests[r].choices; ++c) {
      const std::pair key(r, c);
      EXPECT_EQ(together.texts.at(key), alone.texts.at({0, c}));
      EXPECT_EQ(backwards.texts.at({requests.size() - 1 - r, c}), alone.texts.at({0, c}));
      if (requests[r].max_tokens == 0) continue;
      EXPECT_EQ(together.logprobs.at(key), alone.logprobs.at({0, c}));
    }
  }
}

TEST_F(GeneratorTest, AChoiceCanBeHadAlone) {
  GenerateRequest request = {.prompt = PromptOf(18), .max_tokens = 12, .seed = 99, .choices = 5};
  const Outcome all = RunAll({request}, {});
  request.choices = 1;
  for (std::uint32_t c = 0; c < 5; ++c) {
    request.first_choice = c;
    EXPECT_EQ(RunAll({request}, {}).tokens.at({0, c}), all.tokens.at({0, c}));
  }
  EXPECT_NE(all.texts.at({0, 0}), all.texts.at({0, 1}));
}

// More choices than a batch holds; the prompt is computed once for all.
TEST_F(GeneratorTest, ManyChoicesShareThePrompt) {
  const GenerateRequest request = {
      .prompt = PromptOf(20), .max_tokens = 4, .seed = 5, .choices = 50};
  GenerateReport report;
  RunAll({request}, {.max_batch = 8}, 1, &report);
  // Each choice draws 4 tokens, of which the last is not computed.
  EXPECT_EQ(report.work.positions, 20u + 50u * 3u);
  EXPECT_EQ(report.usage.prompt_tokens, 20u);
  EXPECT_EQ(report.usage.completion_tokens, 200u);
  // Case C23: equal prompts, different draws.
  std::map<std::string, int> texts;
  for (const ChoiceResult& choice : report.results[0].choices) ++texts[choice.text];
  EXPECT_GT(texts.size(), 20u);
}

// Case C57, at a context of 16.
TEST_F(GeneratorTest, ContextIsNeverOutgrown) {
  const auto model = TinyGpt2(vocabulary_.size(), 16);
  base::ThreadTeam team(1);
  const auto generator = Generator::Make(*model, vocabulary_, team, {});
  ASSERT_TRUE(generator);
  for (const std::uint64_t max_tokens :
       {std::uint64_t{1}, std::uint64_t{2}, std::numeric_limits<std::uint64_t>::max()}) {
    const auto run = [&](std::size_t prompt) {
      const GenerateRequest request = {.prompt = PromptOf(prompt), .max_tokens = max_tokens};
      return generator.value()->Run({&request, 1});
    };
    const auto fits = run(15);
    ASSERT_TRUE(fits);
    EXPECT_EQ(fits.value().usage.completion_tokens, 1u);
    EXPECT_EQ(fits.value().results[0].choices[0].finish, FinishReason::kLength);
    const auto full = run(16);
    ASSERT_TRUE(full);
    EXPECT_EQ(full.value().usage.completion_tokens, 0u);
    EXPECT_EQ(full.value().results[0].choices[0].finish, FinishReason::kLength);
    for (const std::size_t prompt : {std::size_t{17}, std::size_t{1000}}) {
      const auto refused = run(prompt);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
      EXPECT_THAT(refused.error().message, HasSubstr(fmt::format("{} tokens", prompt)));
      EXPECT_THAT(refused.error().message, HasSubstr("only 16"));
    }
  }
}

// Case C47: a run that filled the context leaves nothing behind.
TEST_F(GeneratorTest, RunsShareNothing) {
  base::ThreadTeam team(1);
  const auto generator = Generator::Make(*model_, vocabulary_, team, {});
  ASSERT_TRUE(generator);
  const GenerateRequest full = {.prompt = PromptOf(30), .max_tokens = 1000, .seed = 1};
  const GenerateRequest brief = {.prompt = PromptOf(2, 9), .max_tokens = 3, .seed = 2};
  const auto text = [&](const GenerateRequest& request) {
    const auto report = generator.value()->Run({&request, 1});
    EXPECT_TRUE(report);
    return report.value().results[0].choices[0].text;
  };
  const std::string first = text(full);
  EXPECT_EQ(text(brief), RunAll({brief}, {}).texts.at({0, 0}));
  EXPECT_EQ(text(full), first);
}

// Cases C35, C59: prompt lengths around a block and around a chunk.
TEST_F(GeneratorTest, PromptLengthsAroundBlocksAndChunks) {
  for (const std::size_t length : {1u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 32u, 33u}) {
    const std::vector<GenerateRequest> requests = {
        {.prompt = PromptOf(length), .max_tokens = 3, .seed = 4, .choices = 2}};
    EXPECT_TRUE(RunAll(requests, {.prefill_chunk = 8}) == RunAll(requests, {.use_cache = false}))
        << length;
  }
}

// The lesson's numbers: 120 characters process 120 positions with a cache, 7,260 without.
TEST_F(GeneratorTest, WorkWithAndWithoutCache) {
  const auto model = TinyGpt2(vocabulary_.size(), 128);
  base::ThreadTeam team(1);
  const GenerateRequest request = {.prompt = Ids("\n"), .max_tokens = 120, .seed = 1};
  for (const bool use_cache : {true, false}) {
    const auto generator = Generator::Make(*model, vocabulary_, team, {.use_cache = use_cache});
    ASSERT_TRUE(generator);
    std::vector<StepTrace> steps;
    Observer observer;
    observer.on_step = [&](const StepTrace& step) { steps.push_back(step); };
    const auto report = generator.value()->Run({&request, 1}, observer);
    ASSERT_TRUE(report);
    EXPECT_EQ(report.value().steps, 120u);
    EXPECT_EQ(report.value().work.positions, use_cache ? 120u : 7260u);
    EXPECT_EQ(report.value().work.rows_written, use_cache ? 120u : 7260u);
    ASSERT_EQ(steps.size(), 120u);
    const StepTrace& last = steps.back();
    EXPECT_EQ(last.step, 120u);
    EXPECT_EQ(last.tokens, 1u);
    EXPECT_EQ(last.work.positions, use_cache ? 1u : 120u);
    EXPECT_EQ(last.work.rows_read, use_cache ? 120u : 7260u);
    EXPECT_EQ(last.work_without_cache.positions, 120u);
    // 2 layers · 24 channels · K and V · 4 bytes a position, in 8 blocks of 16 positions.
    EXPECT_EQ(report.value().bytes_per_token, 384u);
    EXPECT_EQ(last.held_bytes, use_cache ? 8u * 16u * 384u : 0u);
    ASSERT_EQ(last.held_bytes_per_layer.size(), 2u);
    EXPECT_EQ(last.held_bytes_per_layer[0] * 2, last.held_bytes);
    EXPECT_EQ(report.value().peak_bytes, last.held_bytes);
  }
}

// Two choices share the prompt's full block, and from then on have their own.
TEST_F(GeneratorTest, TheTraceTellsTheBlockTables) {
  const auto model = TinyGpt2(vocabulary_.size(), 128);
  base::ThreadTeam team(1);
  GenerateRequest request = {.prompt = PromptOf(20), .max_tokens = 16, .seed = 1, .choices = 2};
  request.sampling.temperature = 100.0f;
  const auto generator = Generator::Make(*model, vocabulary_, team, {});
  ASSERT_TRUE(generator);
  EXPECT_TRUE(generator.value()->Run({&request, 1}).value().trace.empty());
  Observer observer;
  observer.on_step = [](const StepTrace&) {};
  const auto report = generator.value()->Run({&request, 1}, observer);
  ASSERT_TRUE(report);
  const std::vector<StepTrace>& trace = report.value().trace;
  ASSERT_EQ(trace.size(), report.value().steps);
  ASSERT_EQ(trace.front().tables.size(), 1u);
  EXPECT_TRUE(trace.front().tables[0].stem);
  EXPECT_EQ(trace.front().tables[0].length, 20u);
  EXPECT_EQ(trace.front().tables[0].blocks.size(), 2u);
  const StepTrace& last = trace.back();
  ASSERT_EQ(last.tables.size(), 2u);
  for (const SequenceTrace& table : last.tables) {
    EXPECT_FALSE(table.stem);
    EXPECT_EQ(table.length, 35u);
    ASSERT_EQ(table.blocks.size(), 3u);
  }
  EXPECT_EQ(last.tables[0].choice, 0u);
  EXPECT_EQ(last.tables[1].choice, 1u);
  EXPECT_EQ(last.tables[0].blocks[0], last.tables[1].blocks[0]);
  EXPECT_NE(last.tables[0].blocks[1], last.tables[1].blocks[1]);
  EXPECT_NE(last.tables[0].blocks[2], last.tables[1].blocks[2]);
  EXPECT_EQ(last.held_bytes, 5u * 16 * 384);
}

TEST_F(GeneratorTest, FormsHoldAtEveryTemperature) {
  for (const float temperature : {0.0f, 0.8f, 1.5f, 100.0f}) {
    GenerateRequest request = {.prompt = Ids("\n"), .max_tokens = 1000, .seed = 3, .choices = 4};
    request.sampling.temperature = temperature;
    request.constraint =
        constraints::MakeVerseMatcher(vocabulary_, constraints::VerseForm::kQijue).value();
    GenerateReport report;
    RunAll({request}, {}, 1, &report);
    for (const ChoiceResult& choice : report.results[0].choices) {
      const auto characters = base::SplitCharacters(choice.text);
      ASSERT_EQ(characters.size(), 32u);
      EXPECT_EQ(choice.finish, FinishReason::kConstraint);
      for (std::size_t i = 0; i < 32; ++i) {
        const bool mark = characters[i] == "，" || characters[i] == "。";
        EXPECT_EQ(mark, i % 8 == 7) << i;
      }
    }
  }
}

// Forced tokens cost no step of their own.
TEST_F(GeneratorTest, ForcedTokensAreComputedTogether) {
  GenerateRequest request = {.prompt = Ids("\n"), .max_tokens = 1000, .seed = 3};
  request.constraint = constraints::MakeAcrosticMatcher(vocabulary_, "春夜花落", 5).value();
  GenerateReport report;
  RunAll({request}, {}, 1, &report);
  EXPECT_EQ(report.usage.completion_tokens, 24u);
  EXPECT_EQ(report.steps, 17u);  // 16 drawn, and the last mark's log-probability.
  EXPECT_EQ(report.work.positions, 24u);
}

TEST_F(GeneratorTest, NonFiniteLogitsEndTheRunAndNothingElse) {
  bool broken = true;
  const ScriptedModel model(vocabulary_.size(), 32,
                            [&](std::size_t position, TokenId, std::span<float> row) {
                              if (broken && position == 7) {
                                row[3] = std::numeric_limits<float>::quiet_NaN();
                              }
                            });
  base::ThreadTeam team(1);
  const auto generator = Generator::Make(model, vocabulary_, team, {});
  ASSERT_TRUE(generator);
  const std::vector<GenerateRequest> requests(2, {.prompt = PromptOf(5), .max_tokens = 20});
  const auto failed = generator.value()->Run(requests);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, base::ErrorCode::kNumeric);
  EXPECT_THAT(failed.error().message, HasSubstr("prompt 1: "));
  EXPECT_THAT(failed.error().message, HasSubstr("after position 7"));
  broken = false;
  EXPECT_TRUE(generator.value()->Run(requests));
}

TEST_F(GeneratorTest, ACallbackCanEndTheRun) {
  base::ThreadTeam team(1);
  const auto generator = Generator::Make(*model_, vocabulary_, team, {});
  ASSERT_TRUE(generator);
  const GenerateRequest request = {.prompt = PromptOf(5), .max_tokens = 20};
  int tokens = 0;
  Observer observer;
  observer.on_token = [&](const TokenEvent&) -> base::Result<void> {
    if (++tokens < 3) return base::Success();
    return base::MakeError(base::ErrorCode::kCancelled, "enough");
  };
  const auto report = generator.value()->Run({&request, 1}, observer);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, base::ErrorCode::kCancelled);
  EXPECT_EQ(tokens, 3);
}

TEST_F(GeneratorTest, RequestsAreCheckedBeforeAnythingIsComputed) {
  base::ThreadTeam team(1);
  const auto generator = Generator::Make(*model_, vocabulary_, team, {});
  ASSERT_TRUE(generator);
  std::vector<GenerateRequest> requests(2, {.prompt = PromptOf(5), .max_tokens = 2});
  requests[1].sampling.top_p = 2;
  bool computed = false;
  Observer observer;
  observer.on_step = [&](const StepTrace&) { computed = true; };
  const auto report = generator.value()->Run(requests, observer);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("prompt 2: top-p 2"));
  EXPECT_FALSE(computed);
}

TEST_F(GeneratorTest, NoRequests) {
  base::ThreadTeam team(1);
  const auto generator = Generator::Make(*model_, vocabulary_, team, {});
  ASSERT_TRUE(generator);
  const auto report = generator.value()->Run({});
  ASSERT_TRUE(report);
  EXPECT_EQ(report.value().steps, 0u);
  EXPECT_EQ(report.value().TokensPerSecond(), 0.0);
}

TEST_F(GeneratorTest, OptionsAreChecked) {
  base::ThreadTeam team(1);
  for (const GeneratorOptions& options :
       {GeneratorOptions{.block_tokens = 17}, GeneratorOptions{.max_batch = 0},
        GeneratorOptions{.step_tokens = 0},
        GeneratorOptions{.max_batch = std::numeric_limits<std::uint64_t>::max()}}) {
    const auto generator = Generator::Make(*model_, vocabulary_, team, options);
    ASSERT_FALSE(generator);
    EXPECT_EQ(generator.error().code, base::ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace kvasir::engine
