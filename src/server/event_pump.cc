#include "server/event_pump.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <ctime>
#include <utility>

namespace kvasir::server {
namespace {

constexpr std::size_t kLongestPausePerWork = 31;
constexpr std::chrono::milliseconds kLongestPause{50};

// Of this thread: what it has computed, not what others have kept it from.
std::chrono::nanoseconds ProcessorTime() {
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

EventPump::EventPump(boost::asio::io_context& io)
    : io_(io), pause_(io), queue_(std::make_shared<EventQueue>([this](bool urgent) {
        boost::asio::post(io_, [this, urgent] { OnWake(urgent); });
      })) {}

void EventPump::OnWake(bool urgent) {
  if (urgent || Clock::now() >= next_) {
    Pump();
  } else {
    PumpLater();
  }
}

void EventPump::PumpLater() {
  if (std::exchange(pausing_, true)) return;
  pause_.expires_at(next_);
  pause_.async_wait([this](const boost::system::error_code& error) {
    pausing_ = false;
    if (!error) Pump();
  });
}

std::vector<std::shared_ptr<Answer>> EventPump::Take() {
  std::vector<std::shared_ptr<Answer>> urgent;
  queue_->TakeAll(taken_);
  for (EngineEvent& event : taken_) {
    std::shared_ptr<Answer> answer = event.answer;
    if (event.urgent) urgent.push_back(answer);
    if (answer->Take(std::move(event))) changed_.push_back(std::move(answer));
  }
  taken_.clear();
  return urgent;
}

void EventPump::Pump() {
  const auto begin = ProcessorTime();
  const std::vector<std::shared_ptr<Answer>> urgent = Take();
  if (Clock::now() < next_) {
    for (const auto& answer : urgent) answer->Changed();
    worked_ += ProcessorTime() - begin;
    PumpLater();
    return;
  }
  for (const auto& answer : changed_) answer->Changed();
  const auto times = static_cast<int>(std::min(changed_.size(), kLongestPausePerWork));
  changed_.clear();
  worked_ += ProcessorTime() - begin;
  next_ = Clock::now() + std::min<std::chrono::nanoseconds>(kLongestPause, times * worked_);
  worked_ = {};
}

}  // namespace kvasir::server
