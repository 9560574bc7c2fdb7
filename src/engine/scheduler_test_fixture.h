// For tests: a scheduler of a tiny model, requests for it, and what they give alone.
#ifndef KVASIR_ENGINE_SCHEDULER_TEST_FIXTURE_H_
#define KVASIR_ENGINE_SCHEDULER_TEST_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "engine/engine_test_listener.h"
#include "engine/engine_test_models.h"
#include "engine/scheduler.h"

namespace kvasir::engine {

inline constexpr std::uint64_t kSchedulerContext = 96;

class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerTest()
      : vocabulary_(VocabularyOf("\n。，春眠不觉晓处闻啼鸟夜来风雨声花落知多少")),
        model_(TinyGpt2(vocabulary_.size(), kSchedulerContext)) {}

  std::unique_ptr<Scheduler> Make(SchedulerOptions options = {}) {
    options.clock = &clock_;
    return Scheduler::Make(*model_, vocabulary_, team_, options).value();
  }
  // `count` tokens, of which those from `parting` on depend on salt.
  std::vector<TokenId> Prompt(std::size_t count, std::size_t parting = 0,
                              std::size_t salt = 0) const {
    const TokenId first = vocabulary_.FindPiece("\n").value();
    std::vector<TokenId> ids;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t mixed = i * 7 + (i >= parting ? salt * 5 : 0);
      ids.push_back(first + static_cast<TokenId>(mixed % (vocabulary_.size() - first)));
    }
    return ids;
  }
  EngineRequest Request(std::size_t prompt, std::uint64_t max_tokens, std::size_t salt = 0) const {
    return {
        .generate = {.prompt = Prompt(prompt, 0, salt), .max_tokens = max_tokens, .seed = salt}};
  }
  RecordingListener& Submit(Scheduler& scheduler, const EngineRequest& request) {
    RecordingListener& listener = listeners_.emplace_back();
    const auto id = scheduler.Submit(request, &listener);
    EXPECT_TRUE(id) << id.error().message;
    last_id_ = id.value();
    return listener;
  }
  // Steps to the end; returns how many.
  static int Finish(Scheduler& scheduler) {
    int steps = 0;
    while (scheduler.has_work()) {
      scheduler.Step();
      scheduler.CheckInvariants();
      ++steps;
    }
    return steps;
  }
  // What the request gives alone, in a fresh scheduler.
  std::map<std::uint32_t, ChoiceBits> Alone(const EngineRequest& request) {
    const auto scheduler = Make();
    RecordingListener& listener = Submit(*scheduler, request);
    Finish(*scheduler);
    EXPECT_TRUE(listener.done);
    return listener.choices;
  }

  tokenizer::Vocabulary vocabulary_;
  std::unique_ptr<model::Gpt2Model> model_;
  base::ThreadTeam team_{1};
  FakeClock clock_;
  std::deque<RecordingListener> listeners_;
  RequestId last_id_{};
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_SCHEDULER_TEST_FIXTURE_H_
