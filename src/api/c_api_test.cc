#include "kvasir/c_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kvasir/kvasir.h"

namespace {

using ::testing::HasSubstr;

class CApiTest : public ::testing::Test {
 protected:
  CApiTest() : model_(kvasir_model_load(nullptr, &error_)) {
    kvasir_settings* settings = kvasir_settings_new();
    kvasir_settings_set_threads(settings, 1);
    session_ = kvasir_session_new(model_, settings, &error_);
    kvasir_settings_free(settings);
  }
  ~CApiTest() override {
    kvasir_session_free(session_);
    kvasir_model_free(model_);
    kvasir_error_free(error_);
  }

  kvasir_request* NewRequest() {
    kvasir_request* request = kvasir_request_new("春");
    kvasir_request_set_max_tokens(request, 24);
    kvasir_request_set_seed(request, 1);
    return request;
  }
  // Frees the request.
  std::string TextOf(kvasir_request* request) {
    kvasir_answer* answer = kvasir_generate(session_, request, nullptr, nullptr, &error_);
    kvasir_request_free(request);
    if (answer == nullptr) return kvasir_error_message(error_);
    std::string text = kvasir_answer_text(answer, 0);
    EXPECT_EQ(text.size(), kvasir_answer_text_bytes(answer, 0));
    kvasir_answer_free(answer);
    return text;
  }

  kvasir_error* error_ = nullptr;
  kvasir_model* model_;
  kvasir_session* session_ = nullptr;
};

TEST_F(CApiTest, GivesTheBitsOfTheLibrary) {
  ASSERT_NE(session_, nullptr);
  kvasir::Request asked;
  asked.prompt = "春";
  asked.max_tokens = 24;
  asked.seed = 1;
  auto session = kvasir::Session::Make(kvasir::Model::Load().value()).value();
  const kvasir::Continuation expected = session.Generate(asked).value().continuations.at(0);
  kvasir_request* request = NewRequest();
  kvasir_answer* answer = kvasir_generate(session_, request, nullptr, nullptr, &error_);
  kvasir_request_free(request);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(kvasir_answer_seed(answer), 1u);
  ASSERT_EQ(kvasir_answer_count(answer), 1u);
  EXPECT_EQ(kvasir_answer_text(answer, 0), expected.text);
  EXPECT_STREQ(kvasir_answer_finish(answer, 0), "length");
  ASSERT_EQ(kvasir_answer_token_count(answer, 0), 24u);
  for (std::size_t t = 0; t < 24; ++t) {
    EXPECT_EQ(kvasir_answer_token(answer, 0, t), expected.tokens[t].id);
    EXPECT_EQ(kvasir_answer_logprob(answer, 0, t), expected.tokens[t].logprob);
  }
  kvasir_answer_free(answer);
  EXPECT_EQ(error_, nullptr);
}

TEST_F(CApiTest, TheCallbackIsToldAndMayEndTheRun) {
  struct Seen {
    std::string text;
    int calls = 0;
  } seen;
  const auto callback = [](const kvasir_event* event, void* context) {
    auto* told = static_cast<Seen*>(context);
    told->text += event->text;
    EXPECT_EQ(std::strlen(event->text), event->text_bytes);
    return ++told->calls < 3 ? 1 : 0;
  };
  kvasir_request* request = NewRequest();
  kvasir_answer* answer = kvasir_generate(session_, request, callback, &seen, nullptr);
  kvasir_request_free(request);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(seen.calls, 3);
  EXPECT_STREQ(kvasir_answer_finish(answer, 0), "cancelled");
  EXPECT_EQ(kvasir_answer_text(answer, 0), seen.text);
  kvasir_answer_free(answer);
}

TEST_F(CApiTest, TokensLogitsAndLosses) {
  kvasir_tokens* tokens = kvasir_tokenize(model_, "春风", 0, &error_);
  ASSERT_EQ(kvasir_tokens_count(tokens), 2u);
  const std::uint32_t* ids = kvasir_tokens_data(tokens);
  char* text = kvasir_detokenize(model_, ids, 2, &error_);
  EXPECT_STREQ(text, "春风");
  kvasir_text_free(text);
  const std::size_t vocabulary = kvasir_model_vocabulary(model_);
  std::vector<float> all(2 * vocabulary);
  std::vector<float> last(vocabulary);
  EXPECT_EQ(kvasir_logits(session_, ids, 2, 0, all.data(), all.size(), &error_), 1);
  EXPECT_EQ(kvasir_logits(session_, ids, 2, 1, last.data(), last.size(), &error_), 1);
  EXPECT_EQ(std::memcmp(last.data(), all.data() + vocabulary, vocabulary * sizeof(float)), 0);
  EXPECT_EQ(kvasir_logits(session_, ids, 2, 0, all.data(), all.size() - 1, &error_), 0);
  EXPECT_EQ(kvasir_error_get_code(error_), KVASIR_ERROR_USAGE);
  kvasir_tokens_free(tokens);
  kvasir_evaluation scored = {};
  EXPECT_EQ(kvasir_evaluate(session_, "白日依山尽，", 0, &scored, nullptr), 1);
  EXPECT_EQ(scored.tokens, 5u);
  EXPECT_GT(scored.perplexity, 1.0);
}

TEST_F(CApiTest, EverySettingReachesTheRequest) {
  const std::string plain = TextOf(NewRequest());
  const auto changed = [&](auto&& set) {
    kvasir_request* request = NewRequest();
    set(request);
    return TextOf(request);
  };
  const std::string second = plain.substr(3, 3);
  kvasir_tokens* tokens = kvasir_tokenize(model_, second.c_str(), 0, nullptr);
  const std::uint32_t id = kvasir_tokens_data(tokens)[0];
  kvasir_tokens_free(tokens);
  using R = kvasir_request*;
  const std::string greedy = changed([](R r) { kvasir_request_set_temperature(r, 0); });
  EXPECT_NE(greedy, plain);
  EXPECT_EQ(changed([](R r) { kvasir_request_set_top_k(r, 1); }), greedy);
  EXPECT_EQ(changed([](R r) { kvasir_request_set_top_p(r, 1e-6f); }), greedy);
  EXPECT_EQ(changed([](R r) { kvasir_request_set_min_p(r, 1); }), greedy);
  EXPECT_NE(changed([](R r) { kvasir_request_set_repeat_penalty(r, 50); }), plain);
  EXPECT_THAT(changed([](R r) { kvasir_request_set_presence_penalty(r, 3); }), HasSubstr("3"));
  EXPECT_THAT(changed([](R r) { kvasir_request_set_frequency_penalty(r, 4); }), HasSubstr("4"));
  EXPECT_NE(changed([](R r) { kvasir_request_set_seed(r, 2); }), plain);
  EXPECT_EQ(changed([](R r) { kvasir_request_set_max_tokens(r, 1); }), plain.substr(0, 3));
  EXPECT_EQ(changed([&](R r) { kvasir_request_add_stop(r, second.c_str()); }), plain.substr(0, 3));
  EXPECT_EQ(changed([&](R r) { kvasir_request_set_end_token(r, id); }), plain.substr(0, 3));
  EXPECT_NE(changed([&](R r) { kvasir_request_add_ban(r, second.c_str()); }), plain);
  EXPECT_TRUE(changed([&](R r) { kvasir_request_set_bias(r, id, 100); }).starts_with(second));
  EXPECT_EQ(changed([&](R r) {
              kvasir_request_set_end_token(r, id);
              kvasir_request_set_ignore_end(r, 1);
            }).find(second),
            std::string::npos);
  EXPECT_EQ(changed([](R r) { kvasir_request_set_regex(r, "ja|ja"); }), "ja");
  EXPECT_EQ(changed([](R r) { kvasir_request_set_grammar(r, "root ::= \"ja\""); }), "ja");
  EXPECT_EQ(changed([](R r) { kvasir_request_set_json_schema(r, "{\"const\": 5}", 0, 1); }), "5");
  EXPECT_EQ(changed([](R r) {
              kvasir_request_add_choice(r, "ja");
              kvasir_request_set_max_tokens(r, 9);
            }),
            "ja");
  EXPECT_NE(changed([&](R r) { kvasir_request_set_prompt_tokens(r, &id, 1); }), plain);
  EXPECT_THAT(changed([](R r) { kvasir_request_set_max_tokens(r, 200); }), HasSubstr(plain));
}

TEST_F(CApiTest, CountsAndBestOf) {
  kvasir_request* request = NewRequest();
  kvasir_request_set_count(request, 2);
  kvasir_request_set_best_of(request, 2);
  kvasir_request_set_roll(request, 1);
  kvasir_request_set_max_tokens(request, 140);  // Beyond the context of 128.
  kvasir_request_set_top_logprobs(request, 1);
  kvasir_answer* answer = kvasir_generate(session_, request, nullptr, nullptr, &error_);
  kvasir_request_free(request);
  ASSERT_NE(answer, nullptr);
  ASSERT_EQ(kvasir_answer_count(answer), 2u);
  EXPECT_EQ(kvasir_answer_token_count(answer, 1), 140u);
  kvasir_answer_free(answer);
}

TEST_F(CApiTest, SettingsReachTheSession) {
  const auto refused = [&](auto&& set) {
    kvasir_settings* settings = kvasir_settings_new();
    kvasir_settings_set_threads(settings, 1);
    set(settings);
    kvasir_error* error = nullptr;
    kvasir_session* session = kvasir_session_new(model_, settings, &error);
    kvasir_settings_free(settings);
    std::string message = error != nullptr ? kvasir_error_message(error) : "";
    kvasir_session_free(session);
    kvasir_error_free(error);
    return message;
  };
  using S = kvasir_settings*;
  EXPECT_EQ(refused([](S s) { kvasir_settings_set_cache(s, 0); }), "");
  EXPECT_EQ(refused([](S s) { kvasir_settings_set_prefill_chunk(s, 3); }), "");
  EXPECT_THAT(refused([](S s) { kvasir_settings_set_policy(s, "nonsense"); }),
              HasSubstr("nonsense"));
  EXPECT_THAT(refused([](S s) { kvasir_settings_set_block_tokens(s, 17); }), HasSubstr("17"));
  EXPECT_THAT(refused([](S s) { kvasir_settings_set_max_batch(s, 0); }), HasSubstr("0"));
  EXPECT_THAT(refused([](S s) { kvasir_settings_set_budget(s, 12); }), HasSubstr("12"));
}

TEST(CApiErrorTest, IsToldAndNullIsFreed) {
  kvasir_error* error = nullptr;
  EXPECT_EQ(kvasir_model_load("no/such/file", &error), nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(kvasir_error_get_code(error), KVASIR_ERROR_IO);
  EXPECT_THAT(kvasir_error_message(error), HasSubstr("no/such/file"));
  EXPECT_THAT(kvasir_error_hint(error), HasSubstr("KVASIR_MODEL"));
  kvasir_error_free(error);
  EXPECT_EQ(kvasir_model_load("no/such/file", nullptr), nullptr);
  kvasir_model_free(nullptr);
  kvasir_session_free(nullptr);
  kvasir_error_free(nullptr);
  EXPECT_STREQ(kvasir_version(), kvasir::Version());
  EXPECT_EQ(kvasir_numerics_contract(), kvasir::NumericsContract());
}

}  // namespace
