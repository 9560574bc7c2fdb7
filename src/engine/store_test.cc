// Prompts that start from a store: the answer is the one without it, whatever the store does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "engine/engine_test_models.h"
#include "engine/generator.h"
#include "engine/scheduler.h"
#include "kvcache/test_block_store.h"

namespace kvasir::engine {
namespace {

constexpr std::uint64_t kContext = 192;

const tokenizer::Vocabulary& Letters() {
  static const tokenizer::Vocabulary vocabulary = VocabularyOf("abcdefghijklmnopqrstuvwxyz \n");
  return vocabulary;
}

class StoreTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<model::Gpt2Model> model_ = TinyGpt2(Letters().size(), kContext);
  std::unique_ptr<base::ThreadTeam> team_ = base::ThreadTeam::Make(2).value();
  kvcache::TestBlockStore store_;

  GeneratorOptions Options(kvcache::BlockStore* store) {
    GeneratorOptions options;
    if (*GetParam() != '\0') {
      options.policy = kvcache::CachePolicy::Parse(GetParam(), model_->shape().Policy()).value();
    }
    options.store = store;
    return options;
  }
  GenerateReport Run(kvcache::BlockStore* store, const std::vector<GenerateRequest>& requests) {
    auto generator = Generator::Make(*model_, Letters(), *team_, Options(store)).value();
    return generator->Run(requests).value();
  }
  // `count` tokens of a text named by its number, continued by 12.
  static GenerateRequest Ask(std::uint32_t number, std::size_t count) {
    GenerateRequest request;
    for (std::size_t i = 0; i < count; ++i) {
      const auto words = base::Philox4x32(number, {static_cast<std::uint32_t>(i), 0, 0, 0});
      request.prompt.push_back(260 + words[0] % 26);
    }
    request.max_tokens = 12;
    request.seed = 5;
    return request;
  }
  static std::vector<double> LogProbs(const GenerateReport& report) {
    std::vector<double> all;
    for (const RequestResult& result : report.results) {
      for (const ChoiceResult& choice : result.choices) {
        for (const GeneratedToken& token : choice.tokens) {
          all.push_back(token.id);
          all.push_back(token.logprob);
        }
      }
    }
    return all;
  }
};

TEST_P(StoreTest, ARestartFindsWhatWasWrittenAndAnswersTheSame) {
  const std::vector<GenerateRequest> requests = {Ask(1, 100), Ask(2, 33), Ask(3, 16)};
  const std::vector<double> plain = LogProbs(Run(nullptr, requests));
  EXPECT_EQ(LogProbs(Run(&store_, requests)), plain);
  EXPECT_GT(store_.puts, 0u);
  const std::uint64_t puts = store_.puts;
  const GenerateReport again = Run(&store_, requests);
  EXPECT_EQ(LogProbs(again), plain);
  // Complete blocks of what comes before the last token of each prompt: 96, 32 and none.
  EXPECT_EQ(again.usage.cached_tokens, 128u);
  // What comes from the store does not go there again; the texts' ends do.
  EXPECT_LT(store_.puts - puts, puts);
}

TEST_P(StoreTest, AStoreWithHolesCostsSpeedOnly) {
  const std::vector<GenerateRequest> requests = {Ask(1, 150), Ask(4, 90)};
  const std::vector<double> plain = LogProbs(Run(nullptr, requests));
  Run(&store_, requests);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    store_.loses = [&](const kvcache::BlockIdentity& identity) {
      const auto words = base::Philox4x32(
          seed, {static_cast<std::uint32_t>(identity.name.low), identity.group, 0, 0});
      return words[0] % 4 == 0;
    };
    store_.probe_lies = seed % 2 == 0;
    EXPECT_EQ(LogProbs(Run(&store_, requests)), plain) << "seed " << seed;
  }
}

TEST_P(StoreTest, AStoreThatDoesNotAnswerIsLeftAlone) {
  const std::vector<GenerateRequest> requests = {Ask(1, 100), Ask(2, 60)};
  const std::vector<double> plain = LogProbs(Run(&store_, requests));
  store_.answers = false;
  store_.waits = std::chrono::milliseconds(3);
  const GenerateReport report = Run(&store_, requests);
  EXPECT_EQ(LogProbs(report), plain);
  EXPECT_EQ(report.usage.cached_tokens, 0u);
}

// Tells how often it was asked to step while it waited.
TEST_P(StoreTest, OthersGoOnWhileOneWaitsForTheStore) {
  Run(&store_, {Ask(1, 100)});
  store_.answers = false;
  const std::vector<double> plain = LogProbs(Run(nullptr, {Ask(1, 100)}));

  struct Sink : Listener {
    std::vector<double> told;
    bool done = false;
    void OnToken(const TokenStep& step) override {
      told.push_back(step.token.id);
      told.push_back(step.token.logprob);
    }
    void OnDone(const base::Result<Usage>& usage) override { done = usage.has_value(); }
  };
  Sink waiting;
  Sink short_one;
  SchedulerOptions options;
  options.work = Options(&store_);
  auto scheduler = Scheduler::Make(*model_, Letters(), *team_, options).value();
  ASSERT_TRUE(scheduler->Submit({.generate = Ask(1, 100)}, &waiting));
  ASSERT_TRUE(scheduler->Submit({.generate = Ask(2, 10)}, &short_one));
  for (int i = 0; i < 100 && !short_one.done; ++i) {
    scheduler->Step();
    scheduler->CheckInvariants();
  }
  EXPECT_TRUE(short_one.done);
  EXPECT_TRUE(waiting.told.empty());
  for (int i = 0; i < 1000 && !waiting.done; ++i) {
    store_.Deliver();
    scheduler->Step();
    scheduler->CheckInvariants();
  }
  EXPECT_EQ(waiting.told, plain);
  EXPECT_GT(scheduler->metrics().cached_tokens, 0u);
}

TEST_P(StoreTest, OneThatIsCancelledWhileItWaitsLeavesNothing) {
  Run(&store_, {Ask(1, 100)});
  store_.answers = false;
  struct Sink : Listener {
    void OnToken(const TokenStep&) override {}
    void OnDone(const base::Result<Usage>&) override {}
  };
  Sink sink;
  SchedulerOptions options;
  options.work = Options(&store_);
  auto scheduler = Scheduler::Make(*model_, Letters(), *team_, options).value();
  const RequestId id = scheduler->Submit({.generate = Ask(1, 100)}, &sink).value();
  scheduler->Step();
  store_.Deliver();
  scheduler->Step();
  scheduler->Cancel(id);
  store_.Deliver();
  EXPECT_FALSE(scheduler->Step());
  scheduler->CheckInvariants();
  EXPECT_EQ(scheduler->metrics().cache.live_blocks, 0u);
}

TEST_P(StoreTest, TenantsAndModelsFindNothingOfOthers) {
  const std::vector<GenerateRequest> requests = {Ask(1, 100)};
  Run(&store_, requests);
  GeneratorOptions others = Options(&store_);
  others.weights = {1, 2};
  auto generator = Generator::Make(*model_, Letters(), *team_, others).value();
  EXPECT_EQ(generator->Run(requests).value().usage.cached_tokens, 0u);
}

INSTANTIATE_TEST_SUITE_P(Policies, StoreTest,
                         testing::Values("", "dtype=f16", "window=40,sinks=4", "1:window=24",
                                         "k=int4,group=16,v=int8", "0:store=hidden;1:window=32",
                                         "0:store=none"));

}  // namespace
}  // namespace kvasir::engine
