#include "server/model_service.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/engine_test_models.h"

namespace kvasir::server {
namespace {

constexpr const char* kText = "春风花月江山水人天云日夜雨白青流霜一不上，。\n ab";

class ModelServiceTest : public testing::Test {
 protected:
  ModelServiceTest()
      : tokenizer_(engine::TokenizerOf(kText)),
        model_(engine::TinyGpt2(tokenizer_->vocabulary().size(), 64)) {
    auto made = ModelService::Make(*model_, *tokenizer_,
                                   {.id = "tiny", .cache_policy = "full", .created = 5});
    EXPECT_TRUE(made);
    service_ = std::move(made.value());
  }
  ApiResult<std::shared_ptr<Answer>> Complete(const std::string& more, bool chat = false) {
    const std::string what =
        chat ? R"("messages":[{"role":"user","content":"春"}])" : R"("prompt":"春风")";
    return service_->Complete(R"({"model":"tiny",)" + what + (more.empty() ? "" : "," + more) + "}",
                              chat, "c");
  }

  const std::unique_ptr<tokenizer::CharacterTokenizer> tokenizer_;
  const std::unique_ptr<model::Gpt2Model> model_;
  std::unique_ptr<ModelService> service_;
};

TEST(Fingerprint, ChangesWithEachOfItsParts) {
  const std::string base = Fingerprint({1, 2}, "full");
  EXPECT_EQ(Fingerprint({1, 2}, "full"), base);
  EXPECT_NE(Fingerprint({1, 3}, "full"), base);
  EXPECT_NE(Fingerprint({1, 2}, "dtype=int8"), base);
  EXPECT_TRUE(base.starts_with("kvasir-"));
}

TEST_F(ModelServiceTest, RequestsHoldWhatWasAsked) {
  const auto answer = Complete(R"("n":2,"seed":9,"max_tokens":5,"stop":"。","cache_salt":"s")");
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer.value()->requests.size(), 1u);
  const engine::EngineRequest& request = answer.value()->requests[0];
  EXPECT_EQ(request.client, "c");
  EXPECT_EQ(request.cache_salt, "s");
  EXPECT_EQ(request.generate.prompt, tokenizer_->Encode("春风").value());
  EXPECT_EQ(request.generate.choices, 2u);
  EXPECT_EQ(request.generate.seed, 9u);
  EXPECT_EQ(request.generate.max_tokens, 5u);
  EXPECT_EQ(answer.value()->seed(), 9u);
  EXPECT_FALSE(request.deadline_us);
}

TEST_F(ModelServiceTest, AnAnswersBeginningIsPartOfWhatTheConstraintHasTaken) {
  const auto answer = Complete(R"("answer_prefix":"花月","regex":"[花月山]{3}","max_tokens":9)");
  ASSERT_TRUE(answer) << answer.error().message;
  const auto& work = answer.value()->requests[0].generate;
  EXPECT_EQ(work.prompt, tokenizer_->Encode("春风花月").value());
  ASSERT_TRUE(work.constraint);
  EXPECT_EQ(work.constraint->accepted_tokens(), 2u);
  const auto last = work.constraint->Clone();
  EXPECT_TRUE(last->Accept(tokenizer_->Encode("山").value()[0]));
  EXPECT_TRUE(last->IsComplete());
  const auto plain = Complete(R"("answer_prefix":"花")");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain.value()->requests[0].generate.prompt, tokenizer_->Encode("春风花").value());
  const auto refused = Complete(R"("answer_prefix":"花水","regex":"[花月山]{3}")");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 400);
  EXPECT_EQ(refused.error().param, "answer_prefix");
  EXPECT_NE(refused.error().message.find("character 2"), std::string::npos);
  EXPECT_EQ(Complete(R"("answer_prefix":"x")", true).error().code, "unknown_parameter");
}

TEST_F(ModelServiceTest, ChatsTakeTheRestOfTheContextAndThePlainTemplate) {
  const auto answer = Complete("", true);
  ASSERT_TRUE(answer) << answer.error().message;
  const auto& work = answer.value()->requests[0].generate;
  EXPECT_EQ(work.max_tokens, 64u);
  EXPECT_EQ(work.prompt, tokenizer_->Encode("春\n").value());
  EXPECT_TRUE(answer.value()->seed());
}

TEST_F(ModelServiceTest, ScoringAPromptDrawsHiddenTokens) {
  const auto answer = Complete(R"("echo":true,"logprobs":0,"max_tokens":0)");
  ASSERT_TRUE(answer);
  EXPECT_GT(answer.value()->requests[0].generate.max_tokens, 0u);
  EXPECT_TRUE(answer.value()->requests[0].generate.prompt_logprobs);
}

TEST_F(ModelServiceTest, ConstraintsBecomeMatchers) {
  for (const char* constraint :
       {R"("regex":"[ab]+")", R"("choice":["a","b"])", R"("grammar":"root ::= \"a\"")",
        R"("response_format":{"type":"json_object"})",
        R"("verse":{"form":"wujue","heads":"春江月夜"})"}) {
    const auto answer = Complete(constraint);
    ASSERT_TRUE(answer) << constraint << answer.error().message;
    EXPECT_NE(answer.value()->requests[0].generate.constraint, nullptr) << constraint;
  }
  for (const char* constraint :
       {R"("regex":"(")", R"("grammar":"x")", R"("verse":{"form":"sonnet"})",
        R"("verse":{"form":"wujue","heads":"abcd"})"}) {
    const auto answer = Complete(constraint);
    ASSERT_FALSE(answer) << constraint;
    EXPECT_EQ(answer.error().status, 400) << constraint;
  }
}

TEST_F(ModelServiceTest, RefusalsHaveTheRightStatus) {
  const auto status = [&](const char* body) {
    const auto answer = service_->Complete(body, false, "c");
    return answer ? 200 : answer.error().status;
  };
  EXPECT_EQ(status(R"({"model":"gpt-4","prompt":"春"})"), 404);
  EXPECT_EQ(status(R"({"model":"tiny","prompt":[99999]})"), 400);
  for (const std::string field : {R"("top_k":99999)", R"("logit_bias":{"99999":1})"}) {
    const auto answer =
        service_->Complete(R"({"model":"tiny","prompt":"春",)" + field + "}", false, "c");
    ASSERT_FALSE(answer) << field;
    EXPECT_EQ(answer.error().status, 400);
    EXPECT_EQ(answer.error().param, field.substr(1, field.find(':') - 2));  // Its name.
  }
  std::string longer = R"({"model":"tiny","prompt":")";
  for (int i = 0; i < 65; ++i) longer += "春";
  const auto answer = service_->Complete(longer + "\"}", false, "c");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, "context_length_exceeded");
}

TEST_F(ModelServiceTest, TokensBothWays) {
  const auto there = service_->Tokenize(R"({"text":"春风ab"})");
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_NE(there.value().find(R"("count":4,)"), std::string::npos) << there.value();
  EXPECT_NE(there.value().find(R"("pieces":["春","风","a","b"])"), std::string::npos);
  std::string ids = there.value().substr(there.value().find("\"tokens\":") + 9);
  ids.resize(ids.find(']') + 1);
  EXPECT_EQ(service_->Detokenize(R"({"tokens":)" + ids + "}").value(), R"({"text":"春风ab"})");
  EXPECT_FALSE(service_->Tokenize("{}"));
  EXPECT_FALSE(service_->Tokenize(R"({"text":"a","x":1})"));
  EXPECT_FALSE(service_->Detokenize(R"({"tokens":[99999]})"));
  EXPECT_FALSE(service_->Detokenize(R"({"tokens":"a"})"));
}

TEST_F(ModelServiceTest, NextAsksForOneRow) {
  const auto answer = service_->Next(R"({"prompt":"春"})", "c");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer.value()->wants_logits());
  EXPECT_EQ(answer.value()->requests[0].generate.max_tokens, 1u);
  EXPECT_EQ(service_->Next(R"({"prompt":"春","model":"x"})", "c").error().status, 404);
  EXPECT_EQ(service_->Next(R"({"prompt":""})", "c").has_value(), true);
}

TEST_F(ModelServiceTest, ModelsByName) {
  EXPECT_NE(service_->Models().find(R"("id":"tiny","object":"model","created":5)"),
            std::string::npos);
  EXPECT_TRUE(service_->ModelNamed("tiny"));
  EXPECT_EQ(service_->ModelNamed("other").error().status, 404);
  EXPECT_FALSE(ModelService::Make(*model_, *tokenizer_, {.id = ""}));
  EXPECT_FALSE(ModelService::Make(*model_, *tokenizer_, {.id = "x", .chat_template = "{{ x }}"}));
}

}  // namespace
}  // namespace kvasir::server
