#include "server/answer.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace kvasir::server {
namespace {

class CountingAnswer final : public Answer {
 public:
  explicit CountingAnswer(std::size_t count) : Answer(count) {}
  ApiResult<std::string> Body() override { return std::string(); }
  std::vector<std::size_t> news;  // Kinds, in order.
  std::string text;
  std::size_t rows = 0;

 private:
  void OnNews(std::size_t, News& what) override {
    news.push_back(what.index());
    if (const auto* token = std::get_if<TokenNews>(&what)) text += token->text;
    if (std::holds_alternative<LogitsNews>(what)) ++rows;
  }
};

std::vector<EngineEvent> TakeAll(EventQueue& queue) {
  std::vector<EngineEvent> taken;
  queue.TakeAll(taken);
  return taken;
}

TEST(EventQueue, WakesOncePerBatchOnceItIsTold) {
  int wakes = 0;
  int urgent_wakes = 0;
  EventQueue queue([&](bool urgent) { urgent ? ++urgent_wakes : ++wakes; });
  const auto answer = std::make_shared<CountingAnswer>(1);
  queue.OnTold();
  queue.Push({answer, 0, FinishNews{}});
  queue.Push({answer, 1, FinishNews{}});
  EXPECT_EQ(wakes, 0);
  EXPECT_TRUE(TakeAll(queue).empty());
  queue.OnTold();
  queue.Push({answer, 2, FinishNews{}});
  queue.OnTold();
  EXPECT_EQ(wakes, 1);
  const std::vector<EngineEvent> taken = TakeAll(queue);
  ASSERT_EQ(taken.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(taken[i].request, i);
  EXPECT_TRUE(TakeAll(queue).empty());
  queue.Push({answer, 0, FinishNews{}});
  queue.OnTold();
  EXPECT_EQ(wakes, 2);
  // What is urgent wakes although something has crossed, once.
  for (int i = 0; i < 2; ++i) {
    queue.Push({answer, 0, FinishNews{}, true});
    queue.OnTold();
  }
  EXPECT_EQ(wakes, 2);
  EXPECT_EQ(urgent_wakes, 1);
  EXPECT_EQ(TakeAll(queue).size(), 3u);
}

TEST(EventQueue, LosesNothingBetweenThreads) {
  constexpr std::size_t kEvents = 20000;
  EventQueue queue([](bool) {});
  const auto answer = std::make_shared<CountingAnswer>(1);
  std::thread pusher([&] {
    for (std::size_t i = 0; i < kEvents; ++i) {
      queue.Push({answer, i, FinishNews{}});
      if (i % 7 == 0 || i + 1 == kEvents) queue.OnTold();
    }
  });
  std::size_t taken = 0;
  while (taken < kEvents) {
    for (const EngineEvent& event : TakeAll(queue)) EXPECT_EQ(event.request, taken++);
  }
  pusher.join();
}

TEST(AnswerListener, TellsEverythingInOrderAndEnds) {
  EventQueue queue([](bool) {});
  const auto answer = std::make_shared<CountingAnswer>(1);
  int changes = 0;
  answer->on_change = [&] { ++changes; };
  auto* listener = new AnswerListener(queue, answer, 0, /*want_logits=*/true);
  const engine::GeneratedToken token{.id = 3, .logprob = -1};
  const std::array<float, 2> row = {1, 2};
  listener->OnPromptScored({&token, 1});
  listener->OnLogits(0, 4, row);
  listener->OnLogits(0, 5, row);  // Only the first is asked for.
  listener->OnToken({0, token, "x", std::nullopt});
  listener->OnToken({0, token, "", std::nullopt});
  listener->OnFinish(0, engine::FinishReason::kLength, "y");
  listener->OnDone(engine::Usage{3, 1, 2});
  EXPECT_GT(answer.use_count(), 1);  // The events hold it.
  answer->Changed();                 // Nothing has.
  queue.OnTold();
  std::vector<bool> urgent;
  for (EngineEvent& event : TakeAll(queue)) {
    urgent.push_back(event.urgent);
    const bool first = answer->news.empty();
    EXPECT_EQ(answer->Take(std::move(event)), first);
  }
  EXPECT_EQ(urgent, (std::vector<bool>{false, false, true, false, false, true}));
  answer->Changed();
  answer->Changed();
  EXPECT_EQ(answer->news, (std::vector<std::size_t>{1, 2, 0, 0, 3, 4}));
  EXPECT_EQ(answer->text, "x");
  EXPECT_EQ(answer->rows, 1u);
  EXPECT_EQ(changes, 1);
  EXPECT_TRUE(answer->ended() && answer->complete());
  EXPECT_EQ(answer->usage().cached_tokens, 2u);
  EXPECT_EQ(answer.use_count(), 1);
}

TEST(Answer, AddsUsageAndKeepsTheFirstError) {
  const auto answer = std::make_shared<CountingAnswer>(4);
  answer->Take({answer, 0, DoneNews{engine::Usage{1, 2, 0}}});
  answer->Take({answer, 1, DoneNews{base::MakeError(base::ErrorCode::kNumeric, "first")}});
  answer->Take({answer, 2, DoneNews{base::MakeError(base::ErrorCode::kUsage, "second")}});
  EXPECT_FALSE(answer->ended());
  answer->Forget(1);
  EXPECT_TRUE(answer->ended());
  EXPECT_EQ(answer->usage().completion_tokens, 2u);
  ASSERT_TRUE(answer->error());
  EXPECT_EQ(answer->error()->status, 500);
  EXPECT_EQ(answer->error()->message, "first");
}

}  // namespace
}  // namespace kvasir::server
