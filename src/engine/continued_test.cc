// A text laid aside and gone on with is the text that was never laid aside (Case C51).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "constraints/constraint_compiler.h"
#include "engine/engine_test_models.h"
#include "engine/generator.h"
#include "kvcache/test_block_store.h"

namespace kvasir::engine {
namespace {

constexpr std::uint64_t kContext = 96;
constexpr std::size_t kTokens = 48;

const tokenizer::Vocabulary& Letters() {
  static const tokenizer::Vocabulary vocabulary = VocabularyOf("abcdefghijklmnopqrstuvwxyz \n");
  return vocabulary;
}

class ContinuedTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<model::Gpt2Model> model_ = TinyGpt2(Letters().size(), kContext);
  std::unique_ptr<base::ThreadTeam> team_ = base::ThreadTeam::Make(2).value();

  std::unique_ptr<Generator> Make() {
    GeneratorOptions options;
    if (*GetParam() != '\0') {
      options.policy = kvcache::CachePolicy::Parse(GetParam(), model_->shape().Policy()).value();
    }
    return Generator::Make(*model_, Letters(), *team_, options).value();
  }
  static GenerateRequest Ask(std::size_t prompt = 20) {
    GenerateRequest request;
    for (std::size_t i = 0; i < prompt; ++i) {
      request.prompt.push_back(260 + static_cast<TokenId>(i * 7 % 26));
    }
    request.max_tokens = kTokens;
    request.seed = 7;
    request.sampling.temperature = 1.0f;
    request.sampling.repeat_penalty = 1.3f;
    request.sampling.presence_penalty = 0.5f;
    return request;
  }
  // Runs the request to `cut` tokens, lays the text with its blocks aside, and goes on elsewhere.
  void ExpectSameAfter(const GenerateRequest& request, std::size_t cut) {
    const ChoiceResult whole = Make()->Run({&request, 1}).value().results[0].choices[0];
    if (cut >= whole.tokens.size()) return;
    GenerateRequest head = request;
    head.max_tokens = cut;
    const auto first = Make();
    const ChoiceResult begun = first->Run({&head, 1}).value().results[0].choices[0];
    GenerateRequest rest = request;
    rest.max_tokens -= cut;
    rest.continued = cut;
    for (const GeneratedToken& token : begun.tokens) rest.prompt.push_back(token.id);
    kvcache::TestBlockStore aside;
    const auto text = CachedPart(rest.prompt, kContext);
    const std::size_t laid = first->ExportBlocks(text, aside);
    const auto second = Make();
    EXPECT_EQ(second->ImportBlocks(text, aside), laid);
    const GenerateReport report = second->Run({&rest, 1}).value();
    EXPECT_EQ(report.usage.cached_tokens, laid);
    if (*GetParam() == '\0') {
      EXPECT_EQ(laid, text.size() / 16 * 16);
    }
    const ChoiceResult& gone_on = report.results[0].choices[0];
    ASSERT_EQ(gone_on.tokens.size(), whole.tokens.size() - cut) << cut;
    for (std::size_t i = 0; i < gone_on.tokens.size(); ++i) {
      ASSERT_EQ(gone_on.tokens[i].id, whole.tokens[cut + i].id) << cut << " + " << i;
      ASSERT_EQ(gone_on.tokens[i].logprob, whole.tokens[cut + i].logprob) << cut << " + " << i;
    }
    EXPECT_EQ(gone_on.finish, whole.finish);
    EXPECT_EQ(begun.text + gone_on.text, whole.text) << cut;
  }
};

constexpr std::size_t kCuts[] = {1, 2, 11, 12, 13, 28, 29, 47};

TEST_P(ContinuedTest, DrawsAndPenalties) {
  for (const std::size_t cut : kCuts) ExpectSameAfter(Ask(), cut);
}

TEST_P(ContinuedTest, AnUnfinishedConstraint) {
  constraints::ConstraintCompiler compiler(Letters());
  GenerateRequest request = Ask();
  request.constraint =
      compiler.Make({constraints::ConstraintKind::kRegex, {"(one|two|three)( and [a-m]{3}){6}"}})
          .value();
  for (const std::size_t cut : kCuts) ExpectSameAfter(request, cut);
}

TEST_P(ContinuedTest, TextHeldBackForAStop) {
  // Two letters that follow each other in the text, and a third that does not.
  const GenerateRequest plain = Ask();
  const std::string text = Make()->Run({&plain, 1}).value().results[0].choices[0].text;
  for (const std::size_t cut : {5u, 12u, 20u}) {
    GenerateRequest request = Ask();
    request.stops = {text.substr(cut - 2, 2) + (text[cut] == 'z' ? "a" : "z")};
    ExpectSameAfter(request, cut);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, ContinuedTest,
                         testing::Values("", "window=24,sinks=4", "k=int4,group=16,v=int8",
                                         "0:store=hidden;1:window=40"));

class RolledTest : public ContinuedTest {};

TEST_P(RolledTest, ATextLongerThanTheContext) {
  GenerateRequest request = Ask(70);
  request.overflow = Overflow::kRoll;
  for (const std::size_t cut : kCuts) ExpectSameAfter(request, cut);
}

INSTANTIATE_TEST_SUITE_P(Full, RolledTest, testing::Values(""));

TEST(ContinuedRequestTest, WhatCannotBeContinuedIsRefused) {
  const auto model = TinyGpt2(Letters().size(), kContext);
  GenerateRequest request;
  request.prompt = {260, 261, 262};
  request.continued = 2;
  EXPECT_TRUE(CheckRequest(request, model->shape()));
  request.continued = 3;
  EXPECT_FALSE(CheckRequest(request, model->shape()));
  request.continued = 2;
  request.choices = 2;
  EXPECT_FALSE(CheckRequest(request, model->shape()));
  request.choices = 1;
  constraints::ConstraintCompiler compiler(Letters());
  request.constraint = compiler.Make({constraints::ConstraintKind::kRegex, {"xyz"}}).value();
  const auto refused = CheckRequest(request, model->shape());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("breaks its own constraint"));
}

}  // namespace
}  // namespace kvasir::engine
