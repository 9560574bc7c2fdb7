// How requests end before their time: cancelled, too late, from within a listener.
#include <gtest/gtest.h>

#include "engine/scheduler_test_fixture.h"

namespace kvasir::engine {
namespace {

TEST_F(SchedulerTest, CancellingFreesBlocksAtOnceWhereverTheRequestIs) {
  const auto scheduler = Make({.work = {.prefill_chunk = 16, .max_batch = 2}});
  const auto live = [&] { return scheduler->cache_report().running; };
  RecordingListener& decoding = Submit(*scheduler, Request(10, 50, 1));
  const RequestId decoding_id = last_id_;
  RecordingListener& prefilling = Submit(*scheduler, Request(80, 5, 2));
  const RequestId prefilling_id = last_id_;
  RecordingListener& queued = Submit(*scheduler, Request(10, 5, 3));
  const RequestId queued_id = last_id_;
  scheduler->Step();
  scheduler->Step();
  EXPECT_EQ(live(), 2u);
  EXPECT_TRUE(scheduler->Cancel(queued_id));
  EXPECT_TRUE(queued.done);
  EXPECT_EQ(queued.choices.at(0).finish, FinishReason::kCancelled);
  EXPECT_EQ(scheduler->metrics().waiting.requests, 0u);
  EXPECT_TRUE(scheduler->Cancel(prefilling_id));
  EXPECT_TRUE(prefilling.done);
  EXPECT_EQ(live(), 1u);
  scheduler->CheckInvariants();
  EXPECT_TRUE(scheduler->Cancel(decoding_id));
  EXPECT_EQ(decoding.choices.at(0).tokens.size(), 2u);
  EXPECT_EQ(decoding.usage.completion_tokens, 2u);
  EXPECT_EQ(live(), 0u);
  EXPECT_FALSE(scheduler->has_work());
  EXPECT_FALSE(scheduler->Cancel(decoding_id));
  EXPECT_FALSE(scheduler->Cancel(RequestId{99}));
  scheduler->CheckInvariants();
}

TEST_F(SchedulerTest, CancellingAStemAndItsChoices) {
  for (int steps = 0; steps < 6; ++steps) {
    const auto scheduler = Make({.work = {.prefill_chunk = 8, .max_batch = 2}});
    EngineRequest request = Request(20, 3, 1);
    request.generate.choices = 7;
    request.generate.first_choice = 2;
    RecordingListener& listener = Submit(*scheduler, request);
    for (int i = 0; i < steps; ++i) scheduler->Step();
    ASSERT_FALSE(listener.done);
    scheduler->Cancel(last_id_);
    EXPECT_TRUE(listener.done);
    EXPECT_EQ(listener.choices.size(), 7u);
    EXPECT_EQ(listener.choices.at(8).finish, FinishReason::kCancelled);
    scheduler->CheckInvariants();
    EXPECT_FALSE(scheduler->has_work());
    EXPECT_EQ(scheduler->cache_report().running, 0u);
  }
}

TEST_F(SchedulerTest, CancellingWhilePreempted) {
  const auto scheduler = Make({.work = {.kv_budget_bytes = 4 * 16 * 2 * 24 * 2 * 4}});
  const EngineRequest first = Request(30, 30, 1);
  const RecordingListener& a = Submit(*scheduler, first);
  const RecordingListener& b = Submit(*scheduler, Request(20, 30, 2));
  const RequestId second = last_id_;
  while (scheduler->metrics().preempted == 0) scheduler->Step();
  EXPECT_FALSE(b.done);
  scheduler->Cancel(second);
  EXPECT_TRUE(b.done);
  scheduler->CheckInvariants();
  EXPECT_EQ(scheduler->cache_report().preempted, 0u);
  Finish(*scheduler);
  EXPECT_EQ(a.choices, Alone(first));
}

// A listener may cancel, its own request too, and submit.
TEST_F(SchedulerTest, ListenersMayCancelAndSubmit) {
  const auto scheduler = Make();
  const EngineRequest other = Request(5, 6, 2);
  RecordingListener& own = Submit(*scheduler, Request(5, 50, 1));
  const RequestId own_id = last_id_;
  const RecordingListener& neighbour = Submit(*scheduler, Request(6, 50, 3));
  const RequestId neighbour_id = last_id_;
  RecordingListener* submitted = nullptr;
  own.on_token = [&](const TokenStep&) {
    if (own.choices.at(0).tokens.size() != 3) return;
    EXPECT_TRUE(scheduler->Cancel(own_id));
    EXPECT_FALSE(scheduler->Cancel(own_id));
    EXPECT_TRUE(scheduler->Cancel(neighbour_id));
    submitted = &Submit(*scheduler, other);
    EXPECT_FALSE(own.done) << "not while the listener is being called";
  };
  for (int i = 0; i < 3; ++i) scheduler->Step();
  EXPECT_TRUE(own.done);
  EXPECT_TRUE(neighbour.done);
  EXPECT_EQ(own.choices.at(0).tokens.size(), 3u);
  EXPECT_EQ(neighbour.choices.at(0).tokens.size(), 2u);
  scheduler->CheckInvariants();
  Finish(*scheduler);
  ASSERT_NE(submitted, nullptr);
  EXPECT_EQ(submitted->choices, Alone(other));
}

TEST_F(SchedulerTest, DeadlinesEndWhatIsNotFinished) {
  const auto scheduler = Make({.work = {.max_batch = 2}});
  EngineRequest late = Request(5, 50, 1);
  late.deadline_us = 1000;
  late.generate.choices = 3;
  late.generate.stops = {"never, but held"};
  EngineRequest in_time = Request(5, 2, 2);
  in_time.deadline_us = 1001;
  EngineRequest over_already = Request(5, 2, 3);
  over_already.deadline_us = 0;
  const RecordingListener& a = Submit(*scheduler, late);
  const RecordingListener& b = Submit(*scheduler, in_time);
  const RecordingListener& c = Submit(*scheduler, over_already);
  scheduler->Step();
  EXPECT_TRUE(c.done);
  EXPECT_EQ(c.choices.at(0).finish, FinishReason::kDeadline);
  EXPECT_EQ(c.usage.completion_tokens, 0u);
  for (int i = 0; i < 5; ++i) scheduler->Step();
  EXPECT_TRUE(b.done);
  EXPECT_EQ(b.choices.at(0).finish, FinishReason::kLength);
  clock_.now_us = 999;
  scheduler->Step();
  EXPECT_FALSE(a.done);
  clock_.now_us = 1000;
  EXPECT_FALSE(scheduler->Step());
  EXPECT_TRUE(a.done);
  ASSERT_EQ(a.choices.size(), 3u);
  for (const auto& [index, choice] : a.choices) EXPECT_EQ(choice.finish, FinishReason::kDeadline);
  EXPECT_EQ(scheduler->metrics().finished[static_cast<int>(FinishReason::kDeadline)], 4u);
  scheduler->CheckInvariants();
}

// Text that might have begun a stop string is not lost with the deadline.
TEST_F(SchedulerTest, HeldTextComesWithTheEnd) {
  const auto a = vocabulary_.FindPiece("春").value();
  const ScriptedModel model(vocabulary_.size(), 32, Say(2, {a, a, a, a, a, a}));
  const auto scheduler = Scheduler::Make(model, vocabulary_, team_, {.clock = &clock_}).value();
  EngineRequest request = Request(2, 6);
  request.generate.sampling.temperature = 0;
  request.generate.stops = {"春春花"};
  request.deadline_us = 100;
  RecordingListener& listener = Submit(*scheduler, request);
  for (int i = 0; i < 4; ++i) scheduler->Step();
  clock_.now_us = 100;
  scheduler->Step();
  EXPECT_EQ(listener.choices.at(0).text, "春春");
  EXPECT_EQ(listener.choices.at(0).rest, "春春");
}

}  // namespace
}  // namespace kvasir::engine
