#include "server/completion_call.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server {
namespace {

ApiResult<CompletionCall> Read(const std::string& body, bool chat = false) {
  const auto parsed = ParseBody(body);
  EXPECT_TRUE(parsed) << body;
  return ReadCompletionCall(parsed.value(), chat);
}

ApiResult<CompletionCall> Completion(const std::string& more) {
  return Read(R"({"model":"m","prompt":"x")" + (more.empty() ? "" : "," + more) + "}");
}

ApiResult<CompletionCall> Chat(const std::string& more) {
  return Read(R"({"model":"m","messages":[{"role":"user","content":"x"}])" +
                  (more.empty() ? "" : "," + more) + "}",
              true);
}

void ExpectRefused(const ApiResult<CompletionCall>& result, const std::string& param) {
  ASSERT_FALSE(result) << param;
  EXPECT_EQ(result.error().status, 400);
  EXPECT_EQ(result.error().param, param);
  EXPECT_FALSE(result.error().message.empty());
}

TEST(CompletionCall, DefaultsAreOpenAis) {
  const auto call = Completion("");
  ASSERT_TRUE(call);
  EXPECT_EQ(call.value().max_tokens, 16u);
  EXPECT_EQ(call.value().n, 1u);
  EXPECT_EQ(call.value().sampling.temperature, 1.0f);
  EXPECT_EQ(call.value().sampling.top_p, 1.0f);
  EXPECT_FALSE(call.value().seed);
  EXPECT_FALSE(call.value().logprobs || call.value().stream || call.value().echo);
  const auto chat = Chat("");
  ASSERT_TRUE(chat);
  EXPECT_FALSE(chat.value().max_tokens);
}

TEST(CompletionCall, PromptsOfEachShape) {
  const auto texts = Read(R"({"model":"m","prompt":["a","b",[1,2]]})");
  ASSERT_TRUE(texts);
  ASSERT_EQ(texts.value().prompts.size(), 3u);
  EXPECT_EQ(texts.value().prompts[1].text, "b");
  EXPECT_EQ(texts.value().prompts[2].ids, (std::vector<base::TokenId>{1, 2}));
  const auto ids = Read(R"({"model":"m","prompt":[5,6]})");
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids.value().prompts[0].ids, (std::vector<base::TokenId>{5, 6}));
  ExpectRefused(Read(R"({"model":"m"})"), "prompt");
  ExpectRefused(Read(R"({"model":"m","prompt":[]})"), "prompt");
  ExpectRefused(Read(R"({"model":"m","prompt":[1,"a"]})"), "prompt[1]");
  ExpectRefused(Read(R"({"model":"m","prompt":["a",1]})"), "prompt[1]");
  ExpectRefused(Read(R"({"model":"m","prompt":[-1]})"), "prompt[0]");
  ExpectRefused(Read(R"({"model":"m","prompt":[4294967296]})"), "prompt[0]");
  ExpectRefused(Read(R"({"model":"m","prompt":{}})"), "prompt");
  ExpectRefused(Read(R"({"prompt":"x"})"), "model");
  ExpectRefused(Read(R"({"model":7,"prompt":"x"})"), "model");
}

TEST(CompletionCall, ReadsEverySamplingSetting) {
  const auto call = Completion(
      R"("temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,"repetition_penalty":1.1,)"
      R"("presence_penalty":-2,"frequency_penalty":0.25,"logit_bias":{"7":-100,"8":1.5},)"
      R"("seed":9,"stop":["a","b"],"n":3,"logprobs":2,"user":"u","cache_salt":"s")");
  ASSERT_TRUE(call) << call.error().message;
  const auto& options = call.value().sampling;
  EXPECT_EQ(options.temperature, 0.5f);
  EXPECT_EQ(options.top_p, 0.9f);
  EXPECT_EQ(options.top_k, 40u);
  EXPECT_EQ(options.min_p, 0.05f);
  EXPECT_EQ(options.repeat_penalty, 1.1f);
  EXPECT_EQ(options.presence_penalty, -2.0f);
  EXPECT_EQ(options.frequency_penalty, 0.25f);
  EXPECT_EQ(options.logit_bias.at(7), -100.0f);
  EXPECT_EQ(options.logit_bias.at(8), 1.5f);
  EXPECT_EQ(call.value().seed, 9u);
  EXPECT_EQ(call.value().stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(call.value().n, 3u);
  EXPECT_TRUE(call.value().logprobs);
  EXPECT_EQ(call.value().top_logprobs, 2u);
  EXPECT_EQ(call.value().cache_salt, "s");
}

TEST(CompletionCall, RefusesValuesOutOfRangeByName) {
  ExpectRefused(Completion(R"("temperature":2.1)"), "temperature");
  ExpectRefused(Completion(R"("temperature":"1")"), "temperature");
  ExpectRefused(Completion(R"("top_p":0)"), "top_p");
  ExpectRefused(Completion(R"("top_p":1.01)"), "top_p");
  ExpectRefused(Completion(R"("top_k":-1)"), "top_k");
  ExpectRefused(Completion(R"("min_p":2)"), "min_p");
  ExpectRefused(Completion(R"("repetition_penalty":0)"), "repetition_penalty");
  ExpectRefused(Completion(R"("presence_penalty":2.5)"), "presence_penalty");
  ExpectRefused(Completion(R"("frequency_penalty":-3)"), "frequency_penalty");
  ExpectRefused(Completion(R"("logit_bias":[])"), "logit_bias");
  ExpectRefused(Completion(R"("logit_bias":{"x":1})"), "logit_bias");
  ExpectRefused(Completion(R"("logit_bias":{"1":101})"), "logit_bias.1");
  ExpectRefused(Completion(R"("logit_bias":{"1":1,"01":2})"), "logit_bias");
  ExpectRefused(Completion(R"("n":0)"), "n");
  ExpectRefused(Completion(R"("n":129)"), "n");
  ExpectRefused(Completion(R"("n":2,"best_of":3)"), "best_of");
  ExpectRefused(Completion(R"("logprobs":21)"), "logprobs");
  ExpectRefused(Completion(R"("logprobs":true)"), "logprobs");
  ExpectRefused(Completion(R"("seed":1.5)"), "seed");
  ExpectRefused(Completion(R"("seed":"7")"), "seed");
  ExpectRefused(Completion(R"("stop":[1])"), "stop[0]");
  ExpectRefused(Completion(R"("max_tokens":-1)"), "max_tokens");
  ExpectRefused(Completion(R"("stream":1)"), "stream");
  ExpectRefused(Completion(R"("stream_options":{"include_usage":true})"), "stream_options");
  ExpectRefused(Completion(R"("stream":true,"stream_options":{"x":1})"), "stream_options.x");
  ExpectRefused(Completion(R"("user":5)"), "user");
  ExpectRefused(Completion(R"("cache_salt":"")"), "cache_salt");
  ExpectRefused(Completion(R"("echo":"yes")"), "echo");
}

TEST(CompletionCall, ContinuedGoesWithOneTextOfIds) {
  const auto call = Read(R"({"model":"m","prompt":[5,6,7],"continued":2})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call.value().continued, 2u);
  EXPECT_EQ(Completion("").value().continued, 0u);
  ExpectRefused(Completion(R"("continued":1)"), "continued");
  for (const char* body :
       {R"({"model":"m","prompt":[5,6],"continued":1,"n":2})",
        R"({"model":"m","prompt":[5,6],"continued":1,"echo":true})",
        R"({"model":"m","prompt":[[5,6],[7,8]],"continued":1})",
        R"({"model":"m","prompt":[5,6],"continued":-1})"}) {
    ExpectRefused(Read(body), "continued");
  }
}

TEST(CompletionCall, TooManyChoicesTogether) {
  std::string prompts = "\"x\"";
  for (int i = 1; i < 100; ++i) prompts += ",\"x\"";
  ExpectRefused(Read(R"({"model":"m","n":100,"prompt":[)" + prompts + "]}"), "n");
}

TEST(CompletionCall, SeedsTakeAllBitsAndSigns) {
  EXPECT_EQ(Completion(R"("seed":18446744073709551615)").value().seed, ~std::uint64_t{0});
  EXPECT_EQ(Completion(R"("seed":-1)").value().seed, ~std::uint64_t{0});
  EXPECT_EQ(Completion(R"("seed":0)").value().seed, 0u);
}

TEST(CompletionCall, ChatMessagesOfEachShape) {
  const auto call =
      Read(R"({"model":"m","messages":[{"role":"developer","content":"be"},)"
           R"({"role":"user","name":"n","content":[{"type":"text","text":"a"},)"
           R"({"type":"text","text":"b"}]},{"role":"assistant","content":"c","refusal":null}]})",
           true);
  ASSERT_TRUE(call) << call.error().message;
  ASSERT_EQ(call.value().messages.size(), 3u);
  EXPECT_EQ(call.value().messages[0].role, Role::kSystem);
  EXPECT_EQ(call.value().messages[1].content, "ab");
  EXPECT_EQ(call.value().messages[2].role, Role::kAssistant);
}

TEST(CompletionCall, ChatRefusals) {
  const auto refused = [](const std::string& messages, const std::string& param) {
    ExpectRefused(Read(R"({"model":"m","messages":)" + messages + "}", true), param);
  };
  refused("[]", "messages");
  refused("{}", "messages");
  refused("[1]", "messages[0]");
  refused(R"([{"role":"tool","content":"x"}])", "messages[0].role");
  refused(R"([{"content":"x"}])", "messages[0].role");
  refused(R"([{"role":"user"}])", "messages[0].content");
  refused(R"([{"role":"user","content":1}])", "messages[0].content");
  refused(R"([{"role":"user","content":[{"type":"image_url"}]}])", "messages[0].content[0]");
  refused(R"([{"role":"assistant","content":"x","tool_calls":[{}]}])", "messages[0].tool_calls");
  ExpectRefused(Chat(R"("top_logprobs":2)"), "top_logprobs");
  ExpectRefused(Chat(R"("max_tokens":1,"max_completion_tokens":2)"), "max_completion_tokens");
  ExpectRefused(Chat(R"("max_tokens":0)"), "max_tokens");
  ExpectRefused(Chat(R"("modalities":["audio"])"), "modalities");
  EXPECT_TRUE(Chat(R"("logprobs":true,"top_logprobs":2,"modalities":["text"])"));
}

}  // namespace
}  // namespace kvasir::server
