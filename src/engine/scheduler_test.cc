#include "engine/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler_test_fixture.h"

namespace kvasir::engine {
namespace {

using ::testing::HasSubstr;

TEST_F(SchedulerTest, RequestsThatComeLaterJoinTheBatch) {
  const auto scheduler = Make();
  const EngineRequest first = Request(20, 12, 1);
  const EngineRequest second = Request(9, 5, 2);
  const RecordingListener& a = Submit(*scheduler, first);
  EXPECT_EQ(last_id_, RequestId{1});
  for (int i = 0; i < 4; ++i) scheduler->Step();
  EXPECT_EQ(a.choices.at(0).tokens.size(), 4u);
  const RecordingListener& b = Submit(*scheduler, second);
  EXPECT_EQ(last_id_, RequestId{2});
  scheduler->Step();
  EXPECT_EQ(scheduler->last_step().sequences, 2u);
  EXPECT_EQ(scheduler->last_step().work.positions, 1u + 9u);
  Finish(*scheduler);
  EXPECT_EQ(a.choices, Alone(first));
  EXPECT_EQ(b.choices, Alone(second));
  EXPECT_EQ(b.usage.completion_tokens, 5u);
  EXPECT_FALSE(scheduler->Step());
  EXPECT_EQ(scheduler->last_step().sequences, 0u);
}

TEST_F(SchedulerTest, WhatCannotBeComputedIsRefused) {
  const auto scheduler = Make({.work = {.kv_budget_bytes = 2 * 16 * 2 * 24 * 2 * 4}});
  RecordingListener listener;
  const auto refusal = [&](const EngineRequest& request) {
    const auto id = scheduler->Submit(request, &listener);
    EXPECT_FALSE(id);
    EXPECT_EQ(id.error().code, base::ErrorCode::kUsage);
    return id.error().message;
  };
  EXPECT_THAT(refusal({}), HasSubstr("at least 1 is needed"));
  EXPECT_THAT(refusal(Request(30, 20)), HasSubstr("holds 32 positions"));
  EXPECT_FALSE(listener.done);
  EXPECT_FALSE(scheduler->has_work());
  EXPECT_FALSE(Scheduler::Make(*model_, vocabulary_, team_, {.fairness_quantum = 0}));
  EXPECT_FALSE(Scheduler::Make(*model_, vocabulary_, team_, {.work = {.max_batch = 0}}));
}

TEST_F(SchedulerTest, AFullQueueRefusesAndForgets) {
  const auto scheduler = Make({.work = {.max_batch = 1}, .waiting = {.requests = 2}});
  RecordingListener& running = Submit(*scheduler, Request(3, 4));
  scheduler->Step();
  Submit(*scheduler, Request(3, 4, 1));
  Submit(*scheduler, Request(3, 4, 2));
  RecordingListener refused;
  const auto id = scheduler->Submit(Request(3, 4, 3), &refused);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, base::ErrorCode::kExhausted);
  EXPECT_EQ(scheduler->metrics().refused, 1u);
  EXPECT_EQ(scheduler->metrics().waiting.requests, 2u);
  EXPECT_EQ(scheduler->metrics().waiting.prompt_tokens, 6u);
  while (!running.done) scheduler->Step();
  scheduler->Step();  // One of those that waited has started.
  Submit(*scheduler, Request(3, 4, 3));
  EXPECT_EQ(last_id_, RequestId{4});
  Finish(*scheduler);
  EXPECT_FALSE(refused.done);
}

// ------------------------------------------------------------------ errors

TEST_F(SchedulerTest, AnErrorOfOneRequestEndsNoOther) {
  const ScriptedModel model(vocabulary_.size(), 32,
                            [&](std::size_t position, TokenId, std::span<float> row) {
                              row[position + 3] = 9.0f;
                              if (position == 7) row[0] = std::numeric_limits<float>::quiet_NaN();
                            });
  const auto scheduler = Scheduler::Make(model, vocabulary_, team_, {.clock = &clock_}).value();
  EngineRequest failing = Request(5, 20);
  failing.generate.choices = 3;
  const RecordingListener& a = Submit(*scheduler, failing);
  const RecordingListener& b = Submit(*scheduler, Request(9, 10));
  Finish(*scheduler);
  ASSERT_TRUE(a.error);
  EXPECT_EQ(a.error->code, base::ErrorCode::kNumeric);
  EXPECT_THAT(a.error->message, HasSubstr("after position 7"));
  EXPECT_TRUE(b.done);
  EXPECT_FALSE(b.error);
  EXPECT_EQ(b.choices.at(0).tokens.size(), 10u);
  EXPECT_EQ(scheduler->metrics().failed, 1u);
}

// Passes everything on to another model, but fails a step that holds a certain token.
class FailingModel : public model::Model {
 public:
  FailingModel(const model::Model& model, TokenId poison) : model_(model), poison_(poison) {}
  const model::ModelShape& shape() const override { return model_.shape(); }
  base::Result<void> Forward(std::span<const model::BatchItem> items, model::Scratch& scratch,
                             base::ThreadTeam& team, std::span<float> logits) const override {
    for (const model::BatchItem& item : items) {
      for (const TokenId token : item.tokens) {
        if (token != poison_) continue;
        return base::MakeError(base::ErrorCode::kExhausted, "token {} is too much", token);
      }
    }
    return model_.Forward(items, scratch, team, logits);
  }

 private:
  const model::Model& model_;
  const TokenId poison_;
};

TEST_F(SchedulerTest, AStepThatFailsIsRepeatedWithoutTheCulprit) {
  const TokenId poison = 2;
  const FailingModel model(*model_, poison);
  const auto scheduler = Scheduler::Make(model, vocabulary_, team_, {.clock = &clock_}).value();
  const EngineRequest good = Request(12, 8, 1);
  const EngineRequest also_good = Request(7, 8, 4);
  EngineRequest bad = Request(5, 8, 2);
  bad.generate.prompt[3] = poison;
  const RecordingListener& a = Submit(*scheduler, good);
  const RecordingListener& b = Submit(*scheduler, bad);
  const RecordingListener& c = Submit(*scheduler, also_good);
  Finish(*scheduler);
  EXPECT_EQ(a.choices, Alone(good));
  EXPECT_EQ(c.choices, Alone(also_good));
  ASSERT_TRUE(b.error);
  EXPECT_THAT(b.error->message, HasSubstr("token 2 is too much"));
}

// ------------------------------------------------------------------ the schedule

// A long prompt takes what a step has left; those who decode have a token in each step.
TEST_F(SchedulerTest, DecodingNeverWaitsForAPrompt) {
  for (const std::uint64_t busy : {0u, 6u}) {
    const auto scheduler =
        Make({.work = {.max_batch = 4, .step_tokens = 10}, .busy_step_tokens = busy});
    std::vector<const RecordingListener*> decoding;
    for (std::size_t i = 0; i < 3; ++i) decoding.push_back(&Submit(*scheduler, Request(2, 40, i)));
    scheduler->Step();
    const RecordingListener& late = Submit(*scheduler, Request(80, 3, 9));
    std::size_t steps = 0;
    while (late.choices.empty()) {
      scheduler->Step();
      ++steps;
      EXPECT_LE(scheduler->last_step().work.positions, busy == 0 ? 10u : 6u);
      for (const RecordingListener* listener : decoding) {
        ASSERT_EQ(listener->choices.at(0).tokens.size(), 1 + steps);
      }
      ASSERT_LT(steps, 30u);
    }
    EXPECT_EQ(steps, busy == 0 ? 12u : 27u);  // 80 positions, 7 or 3 in a step.
    Finish(*scheduler);
  }
}

// While one client's prompt is being read, another's is too.
TEST_F(SchedulerTest, PromptsOfDifferentClientsShareSteps) {
  const auto scheduler = Make({.work = {.step_tokens = 20}});
  EngineRequest large = Request(90, 2, 1);
  large.client = "large";
  EngineRequest small = Request(18, 2, 2);
  small.client = "small";
  const RecordingListener& a = Submit(*scheduler, large);
  const RecordingListener& a2 = Submit(*scheduler, large);
  const RecordingListener& b = Submit(*scheduler, small);
  scheduler->Step();
  scheduler->Step();
  EXPECT_EQ(b.choices.at(0).tokens.size(), 1u);
  EXPECT_TRUE(a.choices.empty());
  Finish(*scheduler);
  EXPECT_EQ(b.choices, Alone(small));
  EXPECT_EQ(a.choices, Alone(large));
  EXPECT_EQ(a2.choices, Alone(large));
}

// Thousands of choices and requests of one client hold up no other.
TEST_F(SchedulerTest, AFloodOfOneClientHoldsUpNoOther) {
  const auto scheduler = Make({.work = {.max_batch = 4}, .fairness_quantum = 8});
  EngineRequest flood = Request(4, 6, 1);
  flood.client = "flood";
  flood.generate.choices = 500;
  RecordingListener& many = Submit(*scheduler, flood);
  flood.generate.choices = 1;
  for (std::size_t i = 2; i < 200; ++i) {
    flood.generate.seed = i;
    Submit(*scheduler, flood);
  }
  for (int i = 0; i < 5; ++i) scheduler->Step();
  EngineRequest other = Request(4, 6, 2);
  other.client = "other";
  const RecordingListener& waiting = Submit(*scheduler, other);
  int steps = 0;
  while (!waiting.done) {
    scheduler->Step();
    ASSERT_LE(++steps, 14);  // Six for a slot, six to write, and its turn.
  }
  EXPECT_FALSE(many.done);
  scheduler->CancelAll();
  EXPECT_TRUE(many.done);
  scheduler->CheckInvariants();
}

// ------------------------------------------------------------------ the prefix cache

TEST_F(SchedulerTest, PrefixesOfRunningFinishedAndCancelledRequestsAreFound) {
  const auto scheduler = Make();
  const EngineRequest first = {.generate = {.prompt = Prompt(60), .max_tokens = 20, .seed = 1}};
  const EngineRequest second = {.generate = {.prompt = Prompt(70, 50, 3), .max_tokens = 5}};
  Submit(*scheduler, first);
  const RequestId first_id = last_id_;
  for (int i = 0; i < 3; ++i) scheduler->Step();
  const RecordingListener& running = Submit(*scheduler, second);  // Down to the token.
  while (!running.done) scheduler->Step();
  EXPECT_EQ(running.usage.cached_tokens, 50u);
  scheduler->Cancel(first_id);
  ASSERT_FALSE(scheduler->has_work());
  const RecordingListener& cancelled = Submit(*scheduler, first);
  Finish(*scheduler);
  EXPECT_EQ(cancelled.usage.cached_tokens, 59u);  // Its tokens have completed the fourth block.
  const RecordingListener& finished = Submit(*scheduler, second);
  Finish(*scheduler);
  EXPECT_EQ(finished.usage.cached_tokens, 64u);
  EXPECT_EQ(cancelled.choices, Alone(first));
  EXPECT_EQ(running.choices, Alone(second));
  EXPECT_EQ(finished.choices, Alone(second));
}

// Shorter than a block: nothing of it outlives its texts, but those that run are shared.
TEST_F(SchedulerTest, ShortEqualPromptsAreComputedOnce) {
  const auto scheduler = Make();
  std::vector<const RecordingListener*> all;
  EngineRequest request = Request(12, 6, 1);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    request.generate.seed = seed;
    all.push_back(&Submit(*scheduler, request));
  }
  Finish(*scheduler);
  EXPECT_EQ(scheduler->metrics().computed_positions, 12 + 4 * 1 + 5 * 5u);
  EXPECT_EQ(scheduler->metrics().cached_tokens, 4u * 11u);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    request.generate.seed = seed;
    EXPECT_EQ(all[seed]->choices, Alone(request));
  }
}

TEST_F(SchedulerTest, SaltsKeepTenantsApart) {
  const auto scheduler = Make();
  EngineRequest request = Request(40, 6, 1);
  const auto run = [&](const std::string& salt) {
    request.cache_salt = salt;
    const RecordingListener& listener = Submit(*scheduler, request);
    for (int i = 0; i < 2; ++i) scheduler->Step();  // And while the first still runs.
    const RecordingListener& again = Submit(*scheduler, request);
    Finish(*scheduler);
    EXPECT_EQ(again.usage.cached_tokens, 39u);
    EXPECT_EQ(again.choices, listener.choices);
    return listener.usage.cached_tokens;
  };
  EXPECT_EQ(run(""), 0u);
  EXPECT_EQ(run("one"), 0u);
  EXPECT_EQ(run("two"), 0u);
  EXPECT_EQ(run("one"), 32u);
  EXPECT_EQ(run(""), 32u);
  // And of two that run side by side.
  EngineRequest other = request;
  other.cache_salt = "three";
  request.cache_salt = "four";
  const RecordingListener& a = Submit(*scheduler, request);
  const RecordingListener& b = Submit(*scheduler, other);
  Finish(*scheduler);
  EXPECT_EQ(a.usage.cached_tokens + b.usage.cached_tokens, 0u);
}

// ------------------------------------------------------------------ reports

TEST_F(SchedulerTest, MetricsAndTables) {
  const auto scheduler = Make({.work = {.max_batch = 2}});
  EngineRequest request = Request(20, 3, 1);
  request.client = "c";
  request.cache_salt = "s";
  request.generate.choices = 2;
  Submit(*scheduler, request);
  Submit(*scheduler, Request(5, 2, 2));
  Submit(*scheduler, Request(6, 2, 3));
  clock_.now_us = 400;
  scheduler->Step();
  Metrics metrics = scheduler->metrics();
  EXPECT_EQ(metrics.accepted, 3u);
  EXPECT_EQ(metrics.requests, 3u);
  EXPECT_EQ(metrics.clients, 2u);
  EXPECT_EQ(metrics.waiting.requests, 1u);
  EXPECT_EQ(metrics.waiting.prompt_tokens, 6u);
  EXPECT_EQ(metrics.prompt_tokens, 25u);
  EXPECT_EQ(metrics.generated_tokens, 1u);
  EXPECT_EQ(metrics.running, 1u);  // The stem waits aside.
  EXPECT_EQ(metrics.first_token_us.count(), 1u);
  EXPECT_EQ(metrics.first_token_us.sum_us(), 399u);
  EXPECT_EQ(metrics.cache.live_blocks, 3u);
  clock_.now_us = 500;
  scheduler->Step();
  metrics = scheduler->metrics();
  EXPECT_EQ(metrics.inter_token_us.count(), 1u);
  EXPECT_EQ(metrics.inter_token_us.sum_us(), 100u);
  EXPECT_EQ(metrics.step_us.count(), 2u);
  scheduler->Step();  // The stem's first choice has waited for a slot.
  const std::vector<SequenceSnapshot> sequences = scheduler->Sequences();
  ASSERT_GE(sequences.size(), 2u);
  EXPECT_TRUE(sequences[0].stem);
  EXPECT_EQ(sequences[0].client, "c");
  EXPECT_EQ(sequences[0].cache_salt, "s");
  EXPECT_EQ(sequences[0].request, RequestId{1});
  EXPECT_EQ(sequences[0].length, 20u);
  ASSERT_EQ(sequences[0].blocks.size(), 2u);
  EXPECT_EQ(sequences[0].blocks[0].holders, 2u);  // The stem and its first choice.
  EXPECT_EQ(sequences[0].blocks[0].hits, 0u);     // No other request has found it.
  EXPECT_EQ(sequences[0].blocks[1].begin, 16u);
  EXPECT_TRUE(scheduler->KeptBlocks("s").empty());
  Finish(*scheduler);
  metrics = scheduler->metrics();
  EXPECT_EQ(metrics.finished[static_cast<int>(FinishReason::kLength)], 4u);
  EXPECT_EQ(metrics.generated_tokens, 3u + 3u + 2u + 2u);
  EXPECT_EQ(metrics.requests, 0u);
  EXPECT_EQ(metrics.clients, 0u);
  EXPECT_EQ(metrics.cache.live_blocks, 0u);
  EXPECT_GT(metrics.cache.idle_blocks, 0u);
}

}  // namespace
}  // namespace kvasir::engine
