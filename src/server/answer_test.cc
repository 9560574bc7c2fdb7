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

TEST(EventQueue, WakesOncePerBatch) {
  int wakes = 0;
  EventQueue queue([&] { ++wakes; });
  const auto answer = std::make_shared<CountingAnswer>(1);
  queue.Push({answer, 0, FinishNews{}});
  queue.Push({answer, 0, FinishNews{}});
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(queue.TakeAll().size(), 2u);
  EXPECT_TRUE(queue.TakeAll().empty());
  queue.Push({answer, 0, FinishNews{}});
  EXPECT_EQ(wakes, 2);
}

TEST(EventQueue, LosesNothingBetweenThreads) {
  constexpr std::size_t kEvents = 20000;
  EventQueue queue([] {});
  const auto answer = std::make_shared<CountingAnswer>(1);
  std::thread pusher([&] {
    for (std::size_t i = 0; i < kEvents; ++i) queue.Push({answer, i, FinishNews{}});
  });
  std::size_t taken = 0;
  while (taken < kEvents) {
    for (const EngineEvent& event : queue.TakeAll()) EXPECT_EQ(event.request, taken++);
  }
  pusher.join();
}

TEST(AnswerListener, TellsEverythingInOrderAndEnds) {
  EventQueue queue([] {});
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
  listener->OnFinish(0, engine::FinishReason::kLength, "y");
  listener->OnDone(engine::Usage{3, 1, 2});
  EXPECT_GT(answer.use_count(), 1);  // The events hold it.
  for (EngineEvent& event : queue.TakeAll()) answer->Take(std::move(event));
  EXPECT_EQ(answer->news, (std::vector<std::size_t>{1, 2, 0, 3, 4}));
  EXPECT_EQ(answer->text, "x");
  EXPECT_EQ(answer->rows, 1u);
  EXPECT_EQ(changes, 5);
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
