#include "kvasir/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "kvasir/kvasir.h"

namespace kvasir {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

// The bundled model, read once.
const Model& Bundled() {
  static const Model model = Model::Load().value();
  return model;
}

Session MakeSession(CacheSettings cache = {}, std::size_t threads = 1) {
  return Session::Make(Bundled(), {.threads = threads, .cache = std::move(cache)}).value();
}

Request Asked() {
  Request request;
  request.prompt = "春";
  request.max_tokens = 24;
  request.seed = 1;
  return request;
}

std::vector<std::uint32_t> Bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

std::vector<std::uint64_t> Bits(const Continuation& continuation) {
  std::vector<std::uint64_t> bits;
  for (const Token& token : continuation.tokens) {
    bits.push_back(token.id);
    bits.push_back(std::bit_cast<std::uint64_t>(token.logprob));
  }
  return bits;
}

TEST(SessionTest, TheSameBitsHoweverTheWorkIsArranged) {
  const Continuation plain = MakeSession().Generate(Asked()).value().continuations.at(0);
  ASSERT_EQ(plain.tokens.size(), 24u);
  EXPECT_EQ(plain.finish, FinishReason::kLength);
  std::vector<CacheSettings> arrangements(4);
  arrangements[0].enabled = false;
  arrangements[1].block_tokens = 64;
  arrangements[1].prefill_chunk = 1;
  arrangements[2].share_prefixes = false;
  arrangements[3].budget_bytes = std::uint64_t{2} << 20;
  for (const CacheSettings& cache : arrangements) {
    const Answer answer = MakeSession(cache, 2).Generate(Asked()).value();
    EXPECT_EQ(Bits(answer.continuations.at(0)), Bits(plain));
    EXPECT_EQ(answer.continuations.at(0).text, plain.text);
  }
}

TEST(SessionTest, ABatchGivesWhatEachRequestGivesAlone) {
  std::vector<Request> requests(3, Asked());
  requests[1].prompt = "大漠孤烟直，";
  requests[2].seed = 7;
  requests[2].count = 2;
  Session session = MakeSession();
  const auto together = session.GenerateAll(requests).value();
  ASSERT_EQ(together.size(), 3u);
  EXPECT_EQ(session.usage().completion_tokens, 4 * 24u);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Answer alone = MakeSession().Generate(requests[i]).value();
    ASSERT_EQ(together[i].continuations.size(), alone.continuations.size());
    for (std::size_t j = 0; j < alone.continuations.size(); ++j) {
      EXPECT_EQ(Bits(together[i].continuations[j]), Bits(alone.continuations[j]));
    }
  }
}

TEST(SessionTest, APrefixIsFoundAgainAndChangesNothing) {
  Session session = MakeSession();
  Request request = Asked();
  request.prompt = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。";
  const Answer first = session.Generate(request).value();
  EXPECT_EQ(session.usage().cached_tokens, 0u);
  const Answer second = session.Generate(request).value();
  EXPECT_EQ(session.usage().cached_tokens, 23u);  // All but the last, whose logits are needed.
  EXPECT_EQ(Bits(first.continuations.at(0)), Bits(second.continuations.at(0)));
}

TEST(SessionTest, TheCallbackSeesTheTextAndMayEndIt) {
  Session session = MakeSession();
  std::string seen;
  const Answer whole = session
                           .Generate(Asked(),
                                     [&](const TokenEvent& event) {
                                       seen += event.text;
                                       return true;
                                     })
                           .value();
  EXPECT_EQ(seen, whole.continuations.at(0).text);
  std::size_t calls = 0;
  const Answer cut =
      session.Generate(Asked(), [&](const TokenEvent&) { return ++calls < 5; }).value();
  EXPECT_EQ(calls, 5u);
  EXPECT_EQ(cut.continuations.at(0).finish, FinishReason::kCancelled);
  EXPECT_EQ(cut.continuations.at(0).tokens.size(), 5u);
  EXPECT_TRUE(whole.continuations.at(0).text.starts_with(cut.continuations.at(0).text));
  EXPECT_EQ(session.usage().completion_tokens, 5u);
}

TEST(SessionTest, WhatTheCallbackThrowsComesOutAndTheSessionGoesOn) {
  Session session = MakeSession();
  const auto thrower = [](const TokenEvent&) -> bool { throw std::runtime_error("mine"); };
  EXPECT_THROW(static_cast<void>(session.Generate(Asked(), thrower)), std::runtime_error);
  EXPECT_EQ(Bits(session.Generate(Asked()).value().continuations.at(0)),
            Bits(MakeSession().Generate(Asked()).value().continuations.at(0)));
}

TEST(SessionTest, ConstraintsHold) {
  Session session = MakeSession();
  Request request = Asked();
  request.constraint = Constraint::Choices({"花开", "叶落"});
  Answer answer = session.Generate(request).value();
  EXPECT_THAT(answer.continuations.at(0).text, ::testing::AnyOf("花开", "叶落"));
  EXPECT_EQ(answer.continuations.at(0).finish, FinishReason::kConstraint);
  request.constraint = Constraint::Regex("\\d{4}");
  answer = session.Generate(request).value();
  EXPECT_THAT(answer.continuations.at(0).text, ::testing::MatchesRegex("[0-9][0-9][0-9][0-9]"));
  request.constraint = Constraint::JsonSchema(R"({"type": "boolean"})");
  request.constraint->compact_json = true;
  EXPECT_THAT(session.Generate(request).value().continuations.at(0).text,
              ::testing::AnyOf("true", "false"));
  request.constraint = Constraint::Grammar("root ::= \"ja\" | \"nein\"");
  EXPECT_THAT(session.Generate(request).value().continuations.at(0).text,
              ::testing::AnyOf("ja", "nein"));
}

TEST(SessionTest, StopsBansBiasesAndEndTokens) {
  Session session = MakeSession();
  const std::string plain = session.Generate(Asked()).value().continuations.at(0).text;
  const std::string second = plain.substr(3, 3);  // Its second character.
  Request request = Asked();
  request.stops = {second};
  Answer answer = session.Generate(request).value();
  EXPECT_EQ(answer.continuations.at(0).text, plain.substr(0, 3));
  EXPECT_EQ(answer.continuations.at(0).finish, FinishReason::kStop);
  const TokenId id = Bundled().Tokenize(second).value().at(0);
  request = Asked();
  request.bans = {second};
  EXPECT_THAT(session.Generate(request).value().continuations.at(0).text,
              ::testing::Not(HasSubstr(second)));
  request = Asked();
  request.end_token = id;
  EXPECT_EQ(session.Generate(request).value().continuations.at(0).text, plain.substr(0, 3));
  request = Asked();
  request.biases[id] = 100;
  EXPECT_TRUE(session.Generate(request).value().continuations.at(0).text.starts_with(second));
}

TEST(SessionTest, SeedsAreDrawnAndTold) {
  Session session = MakeSession();
  Request request = Asked();
  request.seed.reset();
  const Answer drawn = session.Generate(request).value();
  EXPECT_NE(drawn.seed, session.Generate(request).value().seed);
  request.seed = drawn.seed;
  EXPECT_EQ(Bits(session.Generate(request).value().continuations.at(0)),
            Bits(drawn.continuations.at(0)));
}

TEST(SessionTest, TheBestOfManyIsTheMostProbable) {
  Session session = MakeSession();
  Request request = Asked();
  request.count = 4;
  const auto all = session.Generate(request).value().continuations;
  request.count = 1;
  request.best_of = 4;
  const auto best = session.Generate(request).value().continuations;
  ASSERT_EQ(best.size(), 1u);
  const auto mean = [](const Continuation& continuation) {
    double sum = 0;
    for (const Token& token : continuation.tokens) sum += token.logprob;
    return sum / static_cast<double>(continuation.tokens.size());
  };
  for (const Continuation& other : all) EXPECT_GE(mean(best[0]), mean(other));
  EXPECT_FALSE(session.Generate(request, [](const TokenEvent&) { return true; }).has_value());
}

TEST(SessionTest, LogitsAreThoseOfTheDraw) {
  Session session = MakeSession();
  const std::vector<TokenId> tokens = Bundled().PromptTokens("春风").value();
  const Logits all = session.AllLogits(tokens).value();
  ASSERT_EQ(all.rows, tokens.size());
  ASSERT_EQ(all.values.size(), all.rows * Bundled().info().vocabulary);
  const Logits last = session.LastLogits(tokens).value();
  EXPECT_EQ(
      Bits(last.values),
      Bits({all.values.end() - static_cast<std::ptrdiff_t>(last.vocabulary), all.values.end()}));
  const auto next = session.Next("春风", 3).value();
  ASSERT_EQ(next.size(), 3u);
  Request request = Asked();
  request.prompt = "春风";
  request.temperature = 0;
  request.max_tokens = 1;
  request.top_logprobs = 3;
  const Token first = session.Generate(request).value().continuations.at(0).tokens.at(0);
  EXPECT_EQ(first.id, next[0].id);
  ASSERT_EQ(first.top.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(first.top[i].id, next[i].id);
    EXPECT_EQ(first.top[i].logprob, next[i].logprob);
  }
}

TEST(SessionTest, EvaluationIsTheLossOfEachToken) {
  Session session = MakeSession();
  const Evaluation scored = session.Evaluate("白日依山尽，黄河入海流。").value();
  ASSERT_EQ(scored.tokens, 11u);
  ASSERT_EQ(scored.token_nll.size(), 11u);
  double sum = 0;
  for (const double nll : scored.token_nll) sum += nll;
  EXPECT_DOUBLE_EQ(scored.nll, sum / 11);
  EXPECT_DOUBLE_EQ(scored.perplexity, std::exp(scored.nll));
  EXPECT_THAT(scored.nll, AllOf(Gt(0.5), Lt(9.0)));
  EXPECT_EQ(session.Evaluate("春").error().code, ErrorCode::kBadData);
}

#if defined(__x86_64__)
TEST(SessionTest, TheCallersFloatingPointStateNeitherMattersNorChanges) {
  const Continuation plain = MakeSession().Generate(Asked()).value().continuations.at(0);
  const std::vector<TokenId> tokens = Bundled().PromptTokens("春风").value();
  const auto bits = Bits(MakeSession().LastLogits(tokens).value().values);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // Denormals are zero, coming and going,
  std::fesetround(FE_UPWARD);   // and results are rounded up.
  const unsigned odd = _mm_getcsr();
  Session session = MakeSession();
  const Continuation again = session.Generate(Asked()).value().continuations.at(0);
  const auto logits = session.LastLogits(tokens).value();
  EXPECT_EQ(_mm_getcsr() & ~0x3fu, odd & ~0x3fu);  // But for the flags of what has happened.
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  _mm_setcsr(before);
  EXPECT_EQ(Bits(again), Bits(plain));
  EXPECT_EQ(Bits(logits.values), bits);
}
#endif

TEST(SessionTest, SessionsOfOneModelWorkAtOnce) {
  const auto expected = Bits(MakeSession().Generate(Asked()).value().continuations.at(0));
  std::vector<std::vector<std::uint64_t>> got(3);
  std::vector<std::thread> threads;
  for (auto& bits : got) {
    threads.emplace_back(
        [&bits] { bits = Bits(MakeSession().Generate(Asked()).value().continuations.at(0)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& bits : got) EXPECT_EQ(bits, expected);
}

TEST(SessionTest, MovesWithItsCache) {
  Session first = MakeSession();
  Request request = Asked();
  request.prompt = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。";
  const auto bits = Bits(first.Generate(request).value().continuations.at(0));
  Session second = MakeSession();
  second = std::move(first);
  EXPECT_EQ(Bits(second.Generate(request).value().continuations.at(0)), bits);
  EXPECT_EQ(second.usage().cached_tokens, 23u);
}

struct Refused {
  const char* name;
  void (*change)(Request&);
  const char* message;
};

class RefusedRequestTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedRequestTest, NamesWhatIsNotAllowed) {
  Session session = MakeSession();
  Request request = Asked();
  GetParam().change(request);
  const auto answer = session.Generate(request);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kUsage) << answer.error().message;
  EXPECT_THAT(answer.error().message, HasSubstr(GetParam().message));
  EXPECT_THAT(answer.error().message, ::testing::Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    Each, RefusedRequestTest,
    ::testing::Values(
        Refused{"Temperature", [](Request& r) { r.temperature = -1; }, "-1"},
        Refused{"TopP", [](Request& r) { r.top_p = 1.5f; }, "1.5"},
        Refused{"Count", [](Request& r) { r.count = 0; }, "0"},
        Refused{"BestOf", [](Request& r) { r.best_of = 0; }, "best_of"},
        Refused{"TooMany", [](Request& r) { r.count = r.best_of = 1u << 12; }, "4096"},
        Refused{"Huge", [](Request& r) { r.count = ~0ull; }, "at most"},
        Refused{"EmptyBan", [](Request& r) { r.bans = {""}; }, "empty"},
        Refused{"EndToken", [](Request& r) { r.end_token = 1u << 30; }, "1073741824"},
        Refused{"PromptToken", [](Request& r) { r.prompt_tokens = {~0u}; }, "4294967295"},
        Refused{"Regex", [](Request& r) { r.constraint = Constraint::Regex("("); }, "("},
        Refused{"NoText", [](Request& r) { r.constraint = Constraint{}; }, "no text"},
        Refused{"TwoTexts",
                [](Request& r) {
                  r.constraint = Constraint::Regex("a");
                  r.constraint->texts.push_back("b");
                },
                "2 texts"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(SessionTest, WhatIsNotUtf8IsRefusedAndABatchNamesIt) {
  Session session = MakeSession();
  Request request = Asked();
  request.prompt = "\xFF";
  EXPECT_EQ(session.Generate(request).error().code, ErrorCode::kBadData);
  EXPECT_THAT(session.GenerateAll({Asked(), request}).error().message, HasSubstr("prompt 2"));
  EXPECT_TRUE(session.GenerateAll({}).value().empty());
}

TEST(SessionTest, SettingsThatAreNotAllowedAreRefused) {
  const auto refused = [](SessionOptions options) {
    const auto made = Session::Make(Bundled(), options);
    return made ? std::string("made") : made.error().message;
  };
  EXPECT_THAT(refused({.threads = 1, .cache = {.policy = "dtype=f7"}}), HasSubstr("f7"));
  EXPECT_THAT(refused({.threads = 1, .cache = {.block_tokens = 17}}), HasSubstr("17"));
  EXPECT_THAT(refused({.threads = 1, .cache = {.max_batch = 0}}), HasSubstr("0"));
  EXPECT_THAT(refused({.threads = 1, .cache = {.budget_bytes = 1}}), HasSubstr("1"));
}

TEST(SessionTest, APolicyMayChangeTheAnswerAndTheCacheOffDoesNotChangeIt) {
  Request request = Asked();
  request.max_tokens = 60;
  CacheSettings window = {.policy = "window=16"};
  const auto some = MakeSession(window).Generate(request).value().continuations.at(0);
  EXPECT_NE(Bits(some), Bits(MakeSession().Generate(request).value().continuations.at(0)));
  window.enabled = false;
  EXPECT_EQ(Bits(some), Bits(MakeSession(window).Generate(request).value().continuations.at(0)));
}

}  // namespace
}  // namespace kvasir
