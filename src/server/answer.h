// Answer: what a client is being told, put together from what the engine tells.
#ifndef KVASIR_SERVER_ANSWER_H_
#define KVASIR_SERVER_ANSWER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "engine/engine_request.h"
#include "engine/listener.h"
#include "server/api_error.h"

namespace kvasir::server {

class Answer;

// What the engine's thread tells, copied so that it can cross to the network's thread.
struct TokenNews {
  std::uint32_t choice = 0;
  engine::GeneratedToken token;
  std::string text;
  std::optional<engine::FinishReason> finish;  // Of the choice's last token.
};
struct ScoredNews {
  std::vector<engine::GeneratedToken> tokens;
};
struct LogitsNews {
  std::vector<float> row;  // [vocab]
};
struct FinishNews {
  std::uint32_t choice = 0;
  engine::FinishReason reason = engine::FinishReason::kStop;
  std::string rest;
};
struct DoneNews {
  base::Result<engine::Usage> usage;
};
using News = std::variant<TokenNews, ScoredNews, LogitsNews, FinishNews, DoneNews>;

struct EngineEvent {
  std::shared_ptr<Answer> answer;
  std::size_t request = 0;  // Of the answer's requests: index.
  News news;
  bool urgent = false;  // A reader waits for it: the first token, or the end.
};

// Events on their way from the engine's thread to another: all of a step's cross together, which
// takes the lock and wakes the other thread once. Push and OnTold are the engine's thread's, which
// never waits for the network; TakeAll the other's.
class EventQueue final : public engine::StepObserver {
 public:
  // wake: called from the engine's thread when the first events cross since TakeAll, and again when
  // the first urgent ones do.
  explicit EventQueue(std::function<void(bool urgent)> wake) : wake_(std::move(wake)) {}
  void Push(EngineEvent event) {
    told_urgent_ = told_urgent_ || event.urgent;
    told_.push_back(std::move(event));
  }
  void OnTold() override;
  // Exchanges an empty vector, whose room is used again, for what has crossed.
  void TakeAll(std::vector<EngineEvent>& taken);

 private:
  const std::function<void(bool urgent)> wake_;
  std::vector<EngineEvent> told_;  // Not crossed yet; the engine's thread's.
  bool told_urgent_ = false;       // Some of them.
  std::mutex mutex_;
  // Under the mutex:
  std::vector<EngineEvent> crossed_;
  bool crossed_urgent_ = false;
};

// One HTTP request's answer, of one engine request or several. Of the network's thread, but made
// elsewhere: until its last OnDone somebody must hold it (shared_ptr). Single-threaded.
class Answer {
 public:
  virtual ~Answer() = default;

  // The requests that it consists of, to be taken once and submitted with listener(i).
  std::vector<engine::EngineRequest> requests;
  std::vector<engine::RequestId> ids;  // Of those that the engine took.
  std::function<void()> on_change;     // Called once after some Takes; may be empty.

  // Takes one event; requests that were never submitted count as done by Forget. Whether it is the
  // first since Changed.
  bool Take(EngineEvent event);
  // Tells on_change, if there was a Take.
  void Changed();
  void Forget(std::size_t requests_lost) { open_ -= requests_lost; }
  // Every request has ended.
  bool ended() const { return open_ == 0; }
  const engine::Usage& usage() const { return usage_; }
  // Of the first request that failed.
  const std::optional<ApiError>& error() const { return error_; }

  // Of a stream: bytes to send now, appended and no longer kept; how many there are. Of a whole
  // answer none.
  virtual void MoveOutput(std::string& /*to*/) {}
  virtual std::size_t pending_bytes() const { return 0; }
  virtual bool streams() const { return false; }
  virtual bool wants_logits() const { return false; }  // See AnswerListener.
  // Where something is drawn: what fixes the draws.
  virtual std::optional<std::uint64_t> seed() const { return std::nullopt; }
  // Once ended without error: the body. Slow work: not for the network's thread.
  virtual ApiResult<std::string> Body() = 0;
  // Everything that the client needs has come, though requests may still run.
  virtual bool complete() const { return ended(); }

 protected:
  explicit Answer(std::size_t request_count) : open_(request_count) {}
  virtual void OnNews(std::size_t request, News& news) = 0;
  // The first one counts.
  void Fail(ApiError error) {
    if (!error_) error_ = std::move(error);
  }

 private:
  std::size_t open_;
  bool changed_ = false;
  engine::Usage usage_;
  std::optional<ApiError> error_;
};

// Tells the queue what one request of an answer is told. Borrows the queue; keeps no answer alive
// by itself, but each event does.
class AnswerListener final : public engine::Listener {
 public:
  // want_logits: the row after the last prompt token is told too.
  AnswerListener(EventQueue& queue, std::shared_ptr<Answer> answer, std::size_t request,
                 bool want_logits)
      : queue_(queue), answer_(std::move(answer)), request_(request), want_logits_(want_logits) {}

  void OnToken(const engine::TokenStep& step) override;
  void OnPromptScored(std::span<const engine::GeneratedToken> tokens) override;
  void OnFinish(std::uint32_t choice, engine::FinishReason reason, std::string_view rest) override;
  // Deletes the listener.
  void OnDone(const base::Result<engine::Usage>& usage) override;
  void OnLogits(std::uint32_t choice, std::size_t position, std::span<const float> row) override;

 private:
  void Push(News news, bool urgent) { queue_.Push({answer_, request_, std::move(news), urgent}); }

  EventQueue& queue_;
  std::shared_ptr<Answer> answer_;
  const std::size_t request_;
  bool want_logits_;
  bool told_token_ = false;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_ANSWER_H_
