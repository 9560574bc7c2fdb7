// Texts longer than the context: what they are predicted from is a function of their length, so the
// cache, chunks and batches still change nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "constraints/drawable_tokens.h"
#include "engine/engine_test_models.h"
#include "engine/generator.h"
#include "model/llama_model.h"

namespace kvasir::engine {
namespace {

constexpr std::uint64_t kContext = 24;
constexpr std::string_view kText = "abcdefghij\n";

std::vector<TokenId> Prompt(std::size_t tokens, TokenId first, std::uint64_t vocab) {
  std::vector<TokenId> prompt;
  for (std::size_t i = 0; i < tokens; ++i) {
    prompt.push_back(static_cast<TokenId>(259 + (first + i * i) % (vocab - 259)));
  }
  return prompt;
}

// Greedy tokens by the definition: each from one step over what rolling leaves of the text.
std::vector<TokenId> Expected(const model::Model& model, std::vector<TokenId> text,
                              std::size_t count, const base::TokenMask& drawable) {
  const std::size_t prompt = text.size();
  const auto geometry = kvcache::CacheGeometry::Make(model.shape().Cache(16)).value();
  const auto pool =
      kvcache::BlockPool::Make(geometry, {.budget_bytes = 8 * geometry.block_bytes()}).value();
  base::ThreadTeam team(1);
  model::Scratch scratch;
  std::vector<float> row(model.shape().vocab);
  for (std::size_t n = 0; n < count; ++n) {
    // Spelled out: 24 tokens are seen whole; the 25th to 36th see what follows the 12th …
    std::size_t start = 0;
    while (text.size() - start > kContext) start += kContext / 2;
    kvcache::CachedSequence sequence(*pool);
    const model::BatchItem item = {&sequence, std::span(text).subspan(start), 1};
    EXPECT_TRUE(model.Forward({&item, 1}, scratch, team, row));
    TokenId best = 0;
    for (TokenId id = 0; id < row.size(); ++id) {
      if (drawable.Test(id) && (!drawable.Test(best) || row[id] > row[best])) best = id;
    }
    text.push_back(best);
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end()};
}

std::vector<TokenId> TokensOf(const ChoiceResult& choice) {
  std::vector<TokenId> ids;
  for (const GeneratedToken& token : choice.tokens) ids.push_back(token.id);
  return ids;
}

GenerateRequest Rolling(std::vector<TokenId> prompt, std::uint64_t tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.overflow = Overflow::kRoll;
  request.max_tokens = tokens;
  request.sampling.temperature = 0;
  return request;
}

TEST(WindowStartTest, KeepsHalfToAWholeContext) {
  EXPECT_EQ(WindowStart(0, 24), 0u);
  EXPECT_EQ(WindowStart(24, 24), 0u);
  EXPECT_EQ(WindowStart(25, 24), 12u);
  EXPECT_EQ(WindowStart(36, 24), 12u);
  EXPECT_EQ(WindowStart(37, 24), 24u);
  for (std::uint64_t context = 2; context < 20; ++context) {
    for (std::uint64_t length = context + 1; length < 200; ++length) {
      const std::uint64_t start = WindowStart(length, context);
      EXPECT_LE(length - start, context);
      EXPECT_GT(length - start, context - context / 2);
      EXPECT_EQ(start % (context / 2), 0u);
    }
  }
}

TEST(OverflowTest, RollingIsAFunctionOfTheLengthHoweverItIsComputed) {
  const auto vocabulary = VocabularyOf(kText);
  const auto model = TinyGpt2(vocabulary.size(), kContext);
  const base::TokenMask drawable = constraints::DefaultMask(vocabulary);
  base::ThreadTeam team(2);
  // A short prompt, one that fills the context, one that is over-long.
  std::vector<GenerateRequest> requests;
  std::vector<std::vector<TokenId>> expected;
  for (const std::size_t prompt : {3u, 24u, 61u}) {
    requests.push_back(
        Rolling(Prompt(prompt, static_cast<TokenId>(prompt), vocabulary.size()), 70));
    expected.push_back(Expected(*model, requests.back().prompt, 70, drawable));
  }
  for (const bool use_cache : {true, false}) {
    for (const std::uint64_t chunk : {0u, 1u, 5u}) {
      for (const std::uint64_t choices : {1u, 3u}) {
        const auto generator = Generator::Make(*model, vocabulary, team,
                                               {.use_cache = use_cache, .prefill_chunk = chunk});
        ASSERT_TRUE(generator);
        for (GenerateRequest& request : requests) request.choices = choices;
        const auto report = generator.value()->Run(requests);
        ASSERT_TRUE(report) << report.error().message;
        for (std::size_t i = 0; i < requests.size(); ++i) {
          for (const ChoiceResult& choice : report.value().results[i].choices) {
            EXPECT_EQ(TokensOf(choice), expected[i]) << use_cache << " " << chunk << " " << i;
            EXPECT_EQ(choice.finish, FinishReason::kLength);
          }
        }
      }
    }
  }
}

TEST(OverflowTest, ABudgetOfOneContextIsEnoughToRoll) {
  const auto vocabulary = VocabularyOf(kText);
  const auto model = TinyGpt2(vocabulary.size(), kContext);
  base::ThreadTeam team(1);
  const auto geometry = kvcache::CacheGeometry::Make(model->shape().Cache(16)).value();
  const auto generator =
      Generator::Make(*model, vocabulary, team, {.kv_budget_bytes = 2 * geometry.block_bytes()});
  ASSERT_TRUE(generator);
  const std::vector<GenerateRequest> requests = {Rolling(Prompt(5, 1, vocabulary.size()), 60),
                                                 Rolling(Prompt(9, 2, vocabulary.size()), 60)};
  const auto report = generator.value()->Run(requests);
  ASSERT_TRUE(report) << report.error().message;
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(TokensOf(report.value().results[i].choices[0]),
              Expected(*model, requests[i].prompt, 60, constraints::DefaultMask(vocabulary)));
  }
}

TEST(OverflowTest, WithoutRollingATextStopsAtTheContext) {
  const auto vocabulary = VocabularyOf(kText);
  const auto model = TinyGpt2(vocabulary.size(), kContext);
  base::ThreadTeam team(1);
  const auto generator = Generator::Make(*model, vocabulary, team, {});
  GenerateRequest request = Rolling(Prompt(5, 1, vocabulary.size()), 70);
  request.overflow = Overflow::kStop;
  const auto report = generator.value()->Run({&request, 1});
  ASSERT_TRUE(report);
  EXPECT_EQ(report.value().results[0].choices[0].tokens.size(), kContext - 5);
  EXPECT_EQ(report.value().results[0].choices[0].finish, FinishReason::kLength);
  request.prompt = Prompt(25, 1, vocabulary.size());
  EXPECT_EQ(generator.value()->Run({&request, 1}).error().code, base::ErrorCode::kUsage);
  request.overflow = Overflow::kRoll;
  request.prompt_logprobs = true;
  EXPECT_THAT(generator.value()->Run({&request, 1}).error().message, testing::HasSubstr("25"));
}

std::unique_ptr<model::LlamaModel> TinyLlama(std::uint64_t vocab) {
  model::LlamaConfig config;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.embedding = 24;
  config.feed_forward = 32;
  config.context = kContext;
  config.vocab = vocab;
  config.rope.dimensions = 8;
  std::vector<float> values;
  std::uint32_t tensor = 0;
  return model::LlamaModel::Make(
             config,
             [&](const model::TensorSpec& spec) -> base::Result<std::span<const float>> {
               values.resize(spec.shape.ElementCount().value());
               ++tensor;
               for (std::size_t i = 0; i < values.size(); ++i) {
                 const auto w = base::Philox4x32(5, {static_cast<std::uint32_t>(i), tensor, 0, 0});
                 values[i] = static_cast<float>(base::UniformDouble(w[0], w[1]) - 0.5);
               }
               return std::span<const float>(values);
             })
      .value();
}

// With windows on every layer and rotary positions a text goes on in constant memory.
TEST(OverflowTest, RotaryWindowsWriteWithoutEndInConstantMemory) {
  const auto vocabulary = VocabularyOf(kText);
  const auto model = TinyLlama(vocabulary.size());
  base::ThreadTeam team(1);
  GeneratorOptions options;
  options.policy =
      kvcache::CachePolicy::Parse("window=10,sinks=2", model->shape().Policy()).value();
  GenerateRequest request = Rolling(Prompt(5, 1, vocabulary.size()), 3000);
  request.overflow = Overflow::kStop;
  request.sampling.temperature = 1;
  std::vector<TokenId> first;
  for (const std::uint64_t budget_blocks : {4u, 400u}) {
    const auto geometry =
        kvcache::CacheGeometry::Make(model->shape().Cache(16, options.policy)).value();
    options.step_tokens = 16;
    options.kv_budget_bytes = budget_blocks * geometry.block_bytes();
    const auto generator = Generator::Make(*model, vocabulary, team, options);
    ASSERT_TRUE(generator);
    const auto report = generator.value()->Run({&request, 1});
    ASSERT_TRUE(report) << report.error().message;
    const std::vector<TokenId> tokens = TokensOf(report.value().results[0].choices[0]);
    EXPECT_EQ(tokens.size(), 3000u);
    EXPECT_LE(report.value().peak_bytes, 4 * geometry.block_bytes());
    if (first.empty()) first = tokens;
    EXPECT_EQ(tokens, first);
  }
  // A prompt whose first step would need more than the budget holds is read in smaller ones.
  GenerateRequest read = request;
  read.prompt = Prompt(300, 2, vocabulary.size());
  read.max_tokens = 20;
  options.step_tokens = 512;
  std::vector<std::vector<TokenId>> answers;
  for (const std::uint64_t budget_blocks : {4u, 400u}) {
    const auto geometry =
        kvcache::CacheGeometry::Make(model->shape().Cache(16, options.policy)).value();
    options.kv_budget_bytes = budget_blocks * geometry.block_bytes();
    const auto report = Generator::Make(*model, vocabulary, team, options).value()->Run({&read, 1});
    ASSERT_TRUE(report) << report.error().message;
    answers.push_back(TokensOf(report.value().results[0].choices[0]));
    EXPECT_EQ(report.value().steps > 20, budget_blocks == 4);
  }
  EXPECT_EQ(answers[0], answers[1]);
  options.policy = std::nullopt;
  const auto bounded = Generator::Make(*model, vocabulary, team, options);
  const auto report = bounded.value()->Run({&request, 1});
  ASSERT_TRUE(report);
  EXPECT_EQ(report.value().results[0].choices[0].tokens.size(), kContext - 5);
}

}  // namespace
}  // namespace kvasir::engine
