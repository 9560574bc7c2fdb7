#include "server/event_pump.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace kvasir::server {
namespace {

using std::chrono::steady_clock;

class TextAnswer final : public Answer {
 public:
  TextAnswer() : Answer(1) {}
  ApiResult<std::string> Body() override { return std::string(); }
  std::string text;

 private:
  void OnNews(std::size_t, News& news) override {
    if (const auto* token = std::get_if<TokenNews>(&news)) text += token->text;
  }
};

class EventPumpTest : public testing::Test {
 protected:
  void Push(const std::shared_ptr<TextAnswer>& answer, std::string text, bool urgent = false) {
    pump_.queue()->Push({answer, 0, TokenNews{0, {}, std::move(text), {}}, urgent});
  }
  void Run() {
    io_.restart();
    io_.run();
  }

  boost::asio::io_context io_;
  EventPump pump_{io_};
  std::shared_ptr<TextAnswer> a_ = std::make_shared<TextAnswer>();
  std::shared_ptr<TextAnswer> b_ = std::make_shared<TextAnswer>();
};

TEST_F(EventPumpTest, TellsEachAnswerOnceOfAllThatCame) {
  std::vector<std::string> seen;
  a_->on_change = [&] { seen.push_back("a " + a_->text); };
  b_->on_change = [&] { seen.push_back("b " + b_->text + a_->text); };
  Push(b_, "1");
  Push(a_, "2");
  Push(b_, "3");
  Run();
  EXPECT_TRUE(seen.empty());  // The step has not ended.
  pump_.queue()->OnTold();
  Push(a_, "4");
  pump_.queue()->OnTold();
  Run();
  EXPECT_EQ(seen, (std::vector<std::string>{"b 1324", "a 24"}));
  EXPECT_EQ(a_.use_count(), 1);  // Nothing of the batch is kept.
  Push(a_, "5");
  pump_.queue()->OnTold();
  Run();
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen.back(), "a 245");
}

TEST_F(EventPumpTest, AfterMuchWorkForManyItPausesButNotForWhatIsUrgent) {
  constexpr double kWorked = 0.004;  // Seconds, of this thread.
  steady_clock::time_point ended;
  steady_clock::time_point next;
  std::vector<std::string> seen;
  a_->on_change = [&] {
    const std::clock_t begin = std::clock();
    while (static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < kWorked) {
    }
    ended = steady_clock::now();
  };
  b_->on_change = [&] {
    next = steady_clock::now();
    seen.push_back(b_->text);
  };
  std::vector<std::shared_ptr<TextAnswer>> others;
  for (int i = 0; i < 6; ++i) Push(others.emplace_back(std::make_shared<TextAnswer>()), "1");
  Push(a_, "1");
  pump_.queue()->OnTold();
  Run();
  const auto c = std::make_shared<TextAnswer>();
  c->on_change = [&] { seen.push_back("c" + c->text); };
  Push(b_, "2");
  pump_.queue()->OnTold();
  Push(c, "!", true);
  Push(b_, "3");
  pump_.queue()->OnTold();
  Run();
  EXPECT_GE(std::chrono::duration<double>(next - ended).count(), 7 * kWorked * 0.99);
  // Unless the machine slept through the pause, c did not wait for it.
  EXPECT_TRUE(seen == (std::vector<std::string>{"c!", "23"}) ||
              seen == (std::vector<std::string>{"23", "c!"}));
}

}  // namespace
}  // namespace kvasir::server
