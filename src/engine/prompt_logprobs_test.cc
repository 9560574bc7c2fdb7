// Log-probabilities of a prompt's own tokens: the same bits computed, in any arrangement, and taken
// from the cache, where they are kept with the blocks.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/engine_test_models.h"
#include "engine/generator.h"
#include "sampling/log_probs.h"

namespace kvasir::engine {
namespace {

class PromptLogprobsTest : public ::testing::Test {
 protected:
  PromptLogprobsTest()
      : vocabulary_(VocabularyOf("\n。，春眠不觉晓处闻啼鸟夜来风雨声花落知多少")),
        model_(TinyGpt2(vocabulary_.size(), 96)) {}

  std::unique_ptr<Generator> Make(const GeneratorOptions& options) {
    return Generator::Make(*model_, vocabulary_, team_, options).value();
  }
  GenerateRequest Scored(std::size_t length, std::size_t parting = 0, std::size_t salt = 0) const {
    const TokenId first = vocabulary_.FindPiece("\n").value();
    GenerateRequest request = {.max_tokens = 6, .top_logprobs = 3, .prompt_logprobs = true};
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t mixed = i * 7 + (i >= parting ? salt * 5 : 0);
      request.prompt.push_back(first + static_cast<TokenId>(mixed % (vocabulary_.size() - first)));
    }
    return request;
  }
  // The definition: every row of the prompt in one step, without anything kept from before.
  std::vector<GeneratedToken> Expected(const GenerateRequest& request) {
    const std::size_t n = request.prompt.size();
    const auto geometry = kvcache::CacheGeometry::Make(model_->shape().Cache(16)).value();
    const auto pool =
        kvcache::BlockPool::Make(geometry, {.budget_bytes = 6 * geometry.block_bytes()}).value();
    kvcache::CachedSequence sequence(*pool);
    std::vector<float> logits(n * vocabulary_.size());
    const model::BatchItem item{&sequence, request.prompt, n};
    model::Scratch scratch;
    EXPECT_TRUE(model_->Forward(std::span(&item, 1), scratch, team_, logits));
    std::vector<GeneratedToken> tokens;
    for (std::size_t t = 1; t < n; ++t) {
      const auto row =
          std::span<const float>(logits).subspan((t - 1) * vocabulary_.size(), vocabulary_.size());
      const TokenId id = request.prompt[t];
      tokens.push_back({.id = id,
                        .logprob = sampling::LogProb(row, id).value(),
                        .top = sampling::TopLogProbs(row, request.top_logprobs).value()});
    }
    return tokens;
  }
  // Equal to the bit: doubles that came from the same operations.
  static void ExpectSame(const std::vector<GeneratedToken>& got,
                         const std::vector<GeneratedToken>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].id, expected[i].id) << i;
      ASSERT_EQ(got[i].logprob, expected[i].logprob) << i;
      ASSERT_EQ(got[i].top.size(), expected[i].top.size()) << i;
      for (std::size_t k = 0; k < got[i].top.size(); ++k) {
        ASSERT_EQ(got[i].top[k].id, expected[i].top[k].id) << i;
        ASSERT_EQ(got[i].top[k].logprob, expected[i].top[k].logprob) << i;
        ASSERT_EQ(got[i].top[k].prob, expected[i].top[k].prob) << i;
      }
    }
  }

  tokenizer::Vocabulary vocabulary_;
  std::unique_ptr<model::Model> model_;
  base::ThreadTeam team_{2};
};

TEST_F(PromptLogprobsTest, AreTheSameInEveryArrangement) {
  const std::vector<GenerateRequest> requests = {Scored(50, 35, 1), Scored(50, 35, 2), Scored(33),
                                                 Scored(2), Scored(90, 16, 3)};
  std::vector<std::vector<GeneratedToken>> expected;
  for (const GenerateRequest& request : requests) expected.push_back(Expected(request));
  const std::vector<GeneratorOptions> arrangements = {
      {},
      {.use_cache = false},
      {.block_tokens = 48},
      {.prefill_chunk = 7},
      {.max_batch = 2, .step_tokens = 20},
      {.placement_seed = 5},
      {.kv_budget_bytes = 8 * 16 * 2 * 24 * 2 * 4}};  // Eight blocks: sequences give way.
  for (std::size_t a = 0; a < arrangements.size(); ++a) {
    SCOPED_TRACE(a);
    const auto report = Make(arrangements[a])->Run(requests).value();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      ExpectSame(report.results[i].prompt, expected[i]);
    }
  }
}

// With choices that share a stem they are told once; and asking for them changes no drawn token.
TEST_F(PromptLogprobsTest, ChangeNothingElse) {
  GenerateRequest scored = Scored(40);
  scored.choices = 3;
  GenerateRequest plain = scored;
  plain.prompt_logprobs = false;
  const auto with = Make({})->Run(std::span(&scored, 1)).value();
  const auto without = Make({})->Run(std::span(&plain, 1)).value();
  ExpectSame(with.results[0].prompt, Expected(scored));
  EXPECT_TRUE(without.results[0].prompt.empty());
  for (std::size_t c = 0; c < 3; ++c) {
    ExpectSame(with.results[0].choices[c].tokens, without.results[0].choices[c].tokens);
  }
}

// A second text finds them with the blocks: only where it parts from the first is it computed.
TEST_F(PromptLogprobsTest, AreKeptWithTheBlocks) {
  const auto generator = Make({});
  const GenerateRequest first = Scored(80);
  ASSERT_TRUE(generator->Run(std::span(&first, 1)));
  for (const GenerateRequest& next : {Scored(80), Scored(80, 40, 1), Scored(30)}) {
    const auto report = generator->Run(std::span(&next, 1)).value();
    ExpectSame(report.results[0].prompt, Expected(next));
    EXPECT_GE(report.usage.cached_tokens, next.prompt.size() == 30 ? 28u : 38u);
    // The prompt's rest, and all but the last of the tokens that follow.
    EXPECT_EQ(report.work.positions, next.prompt.size() - report.usage.cached_tokens + 5);
  }
}

// More alternatives than are kept, and a prompt that nobody has scored: both computed again.
TEST_F(PromptLogprobsTest, WhatIsNotKeptIsComputed) {
  const auto generator = Make({});
  GenerateRequest unscored = Scored(64);
  unscored.prompt_logprobs = false;
  ASSERT_TRUE(generator->Run(std::span(&unscored, 1)));
  GenerateRequest scored = Scored(64);
  auto report = generator->Run(std::span(&scored, 1)).value();
  ExpectSame(report.results[0].prompt, Expected(scored));
  EXPECT_EQ(report.usage.cached_tokens, 0u);
  scored.top_logprobs = 25;
  report = generator->Run(std::span(&scored, 1)).value();
  ExpectSame(report.results[0].prompt, Expected(scored));
  EXPECT_EQ(report.usage.cached_tokens, 0u);
  scored.top_logprobs = 20;
  report = generator->Run(std::span(&scored, 1)).value();
  ExpectSame(report.results[0].prompt, Expected(scored));
  EXPECT_GT(report.usage.cached_tokens, 40u);
}

// The one token drawn comes with the prompt's last row, and ends the request.
TEST_F(PromptLogprobsTest, AreToldBeforeTheOnlyToken) {
  GenerateRequest request = Scored(20);
  request.max_tokens = 1;
  for (const std::uint64_t chunk : {0u, 1u, 7u}) {
    const auto report = Make({.prefill_chunk = chunk})->Run({&request, 1});
    ASSERT_TRUE(report);
    ExpectSame(report.value().results[0].prompt, Expected(request));
    EXPECT_EQ(report.value().results[0].choices[0].tokens.size(), 1u);
  }
}

}  // namespace
}  // namespace kvasir::engine
