#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine_test_listener.h"
#include "engine/engine_test_models.h"

namespace kvasir::engine {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kNever = ~std::uint64_t{0};

// Records, and says across threads when it is done; the engine is out of it once it has gone or a
// Snapshot has been taken since.
class WaitingListener : public RecordingListener {
 public:
  WaitingListener() {
    on_done = [this] { ended_.set_value(); };
  }
  void Wait() { future_.wait(); }

 private:
  std::promise<void> ended_;
  std::future<void> future_ = ended_.get_future();
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest()
      : vocabulary_(VocabularyOf("\n。，春眠不觉晓处闻啼鸟夜来风雨声花落知多少")),
        model_(TinyGpt2(vocabulary_.size(), 96)) {}

  std::unique_ptr<Engine> Make(const SchedulerOptions& options = {}) {
    return Engine::Make(*model_, vocabulary_, team_, options).value();
  }
  EngineRequest Request(std::size_t prompt, std::uint64_t max_tokens, std::size_t salt = 0) const {
    const TokenId first = vocabulary_.FindPiece("\n").value();
    EngineRequest request;
    for (std::size_t i = 0; i < prompt; ++i) {
      const std::size_t mixed = i * 7 + (i >= 20 ? salt * 5 : 0);
      request.generate.prompt.push_back(first +
                                        static_cast<TokenId>(mixed % (vocabulary_.size() - first)));
    }
    request.generate.max_tokens = max_tokens;
    request.generate.seed = salt;
    return request;
  }
  std::map<std::uint32_t, ChoiceBits> Alone(const EngineRequest& request) {
    base::ThreadTeam team(1);
    const auto scheduler = Scheduler::Make(*model_, vocabulary_, team, {}).value();
    RecordingListener listener;
    EXPECT_TRUE(scheduler->Submit(request, &listener));
    while (scheduler->Step()) {
    }
    return listener.choices;
  }

  tokenizer::Vocabulary vocabulary_;
  std::unique_ptr<model::Gpt2Model> model_;
  base::ThreadTeam team_{2};
};

TEST_F(EngineTest, AnswersAndSleepsAndAnswersAgain) {
  std::deque<WaitingListener> listeners(4);
  const auto engine = Make();
  for (std::size_t i = 1; i <= 3; ++i) {
    WaitingListener& listener = listeners[i];
    const auto id = engine->Submit(Request(10 * i, 6, i), &listener);
    ASSERT_TRUE(id);
    EXPECT_EQ(id.value(), RequestId{i});
    listener.Wait();
    EXPECT_EQ(listener.choices, Alone(Request(10 * i, 6, i)));
  }
  const EngineSnapshot snapshot = engine->Snapshot();
  EXPECT_EQ(snapshot.metrics.accepted, 3u);
  EXPECT_EQ(snapshot.metrics.generated_tokens, 18u);
  EXPECT_TRUE(snapshot.sequences.empty());
  EXPECT_EQ(snapshot.cache.pool.live_blocks, 0u);
}

TEST_F(EngineTest, RefusesAtOnce) {
  std::promise<void> started;
  std::promise<void> go_on;
  std::deque<WaitingListener> taken(2);
  RecordingListener listener;
  const auto engine = Make({.work = {.max_batch = 1}, .waiting = {.requests = 1}});
  const auto wrong = engine->Submit({}, &listener);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, base::ErrorCode::kUsage);
  // One that is being computed, one that waits: the third finds no place, the engine being held up
  // in a listener.
  taken[0].on_token = [&, first = true](const TokenStep&) mutable {
    if (!std::exchange(first, false)) return;
    started.set_value();
    go_on.get_future().wait();
  };
  ASSERT_TRUE(engine->Submit(Request(5, 4, 1), &taken[0]));
  started.get_future().wait();
  ASSERT_TRUE(engine->Submit(Request(5, 4, 2), &taken[1]));
  const auto refused = engine->Submit(Request(5, 4, 3), &listener);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kExhausted);
  go_on.set_value();
  for (WaitingListener& one : taken) one.Wait();
  EXPECT_FALSE(listener.done);
  EXPECT_EQ(engine->Snapshot().metrics.refused, 1u);
}

TEST_F(EngineTest, CancelsWhatRunsAndIgnoresWhatHasEnded) {
  WaitingListener listener;
  std::promise<void> started;
  const auto engine = Make();
  listener.on_token = [&, first = true](const TokenStep&) mutable {
    if (std::exchange(first, false)) started.set_value();
  };
  EngineRequest request = Request(5, 90, 1);
  request.generate.choices = 200;
  const auto id = engine->Submit(request, &listener);
  ASSERT_TRUE(id);
  started.get_future().wait();
  engine->Cancel(id.value());
  listener.Wait();
  EXPECT_EQ(listener.choices.at(199).finish, FinishReason::kCancelled);
  engine->Cancel(id.value());
  engine->Cancel(RequestId{77});
  EXPECT_TRUE(engine->Snapshot().sequences.empty());
}

TEST_F(EngineTest, DrainsOrCutsShort) {
  {
    WaitingListener listener;
    const auto engine = Make();
    ASSERT_TRUE(engine->Submit(Request(5, 20, 1), &listener));
    EXPECT_TRUE(engine->Drain(kNever));
    EXPECT_TRUE(listener.done);
    EXPECT_EQ(listener.choices.at(0).finish, FinishReason::kLength);
    RecordingListener late;
    const auto refused = engine->Submit(Request(5, 20, 1), &late);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, base::ErrorCode::kCancelled);
    EXPECT_THAT(refused.error().message, HasSubstr("shutting down"));
    EXPECT_TRUE(engine->Drain(0)) << "there is nothing left to cancel";
  }
  WaitingListener listener;
  const auto engine = Make();
  EngineRequest endless = Request(5, 90, 1);
  endless.generate.choices = 10'000;
  ASSERT_TRUE(engine->Submit(endless, &listener));
  EXPECT_FALSE(engine->Drain(engine->Now()));
  EXPECT_TRUE(listener.done);
  EXPECT_EQ(listener.choices.at(9999).finish, FinishReason::kCancelled);
}

TEST_F(EngineTest, EndsWithWorkLeftAndTellsSo) {
  WaitingListener listener;
  {
    const auto engine = Make();
    EngineRequest endless = Request(5, 90, 1);
    endless.generate.choices = 10'000;
    ASSERT_TRUE(engine->Submit(endless, &listener));
  }
  EXPECT_TRUE(listener.done);
}

// Several threads submit, cancel and look, while the engine runs: every answer is the one that the
// request gives alone, or a beginning of it where its thread has cancelled it.
TEST_F(EngineTest, ManyThreadsAtOnce) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kRequests = 30;
  constexpr std::size_t kKinds = 12;
  std::vector<EngineRequest> kinds;
  std::vector<std::map<std::uint32_t, ChoiceBits>> alone;
  for (std::size_t i = 0; i < kKinds; ++i) {
    EngineRequest request = Request(3 + i * 5, 4 + i, i);
    request.generate.choices = 1 + i % 3;
    alone.push_back(Alone(request));
    kinds.push_back(request);
  }
  const auto engine =
      Make({.work = {.max_batch = 6, .step_tokens = 40, .kv_budget_bytes = 20 * 6144}});
  std::atomic<std::uint64_t> cancelled{0};
  const auto talk = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::deque<WaitingListener> listeners;
    std::vector<std::pair<std::size_t, RequestId>> asked;  // Kinds and ids.
    for (std::size_t i = 0; i < kRequests; ++i) {
      const std::size_t kind = random() % kKinds;
      EngineRequest request = kinds[kind];
      request.client = std::to_string(seed);
      const auto id = engine->Submit(request, &listeners.emplace_back());
      ASSERT_TRUE(id);
      asked.emplace_back(kind, id.value());
      if (random() % 3 == 0) engine->Cancel(asked[random() % asked.size()].second);
      if (random() % 5 == 0) {
        EXPECT_LE(engine->Snapshot().metrics.running, 6u);
      }
      if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    for (std::size_t i = 0; i < kRequests; ++i) {
      listeners[i].Wait();
      EXPECT_FALSE(listeners[i].error);
      for (const auto& [index, choice] : listeners[i].choices) {
        const ChoiceBits& whole = alone[asked[i].first].at(index);
        if (choice.finish == FinishReason::kCancelled) {
          ++cancelled;
          EXPECT_TRUE(choice.IsBeginningOf(whole));
        } else {
          EXPECT_EQ(choice, whole);
        }
      }
    }
    engine->Snapshot();
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t <= kThreads; ++t) threads.emplace_back(talk, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(cancelled, 0u);
  EXPECT_TRUE(engine->Drain(kNever));
  const EngineSnapshot snapshot = engine->Snapshot();
  EXPECT_EQ(snapshot.metrics.accepted, kThreads * kRequests);
  EXPECT_EQ(snapshot.metrics.requests, 0u);
  EXPECT_EQ(snapshot.cache.pool.live_blocks, 0u);
}

}  // namespace
}  // namespace kvasir::engine
