#include "server/answer.h"

#include <utility>

#include "base/check.h"

namespace kvasir::server {

void EventQueue::Push(EngineEvent event) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = events_.empty();
    events_.push_back(std::move(event));
  }
  if (first) wake_();
}

std::vector<EngineEvent> EventQueue::TakeAll() {
  std::vector<EngineEvent> events;
  const std::lock_guard lock(mutex_);
  events.swap(events_);
  return events;
}

void Answer::Take(EngineEvent event) {
  if (auto* done = std::get_if<DoneNews>(&event.news)) {
    KV_CHECK(open_ > 0);
    --open_;
    if (done->usage) {
      usage_.prompt_tokens += done->usage.value().prompt_tokens;
      usage_.completion_tokens += done->usage.value().completion_tokens;
      usage_.cached_tokens += done->usage.value().cached_tokens;
    } else {
      Fail(ApiError(done->usage.error()));
    }
  }
  OnNews(event.request, event.news);
  if (on_change) on_change();
}

void AnswerListener::OnToken(const engine::TokenStep& step) {
  Push(TokenNews{step.choice, step.token, std::string(step.text), step.finish});
}

void AnswerListener::OnPromptScored(std::span<const engine::GeneratedToken> tokens) {
  Push(ScoredNews{{tokens.begin(), tokens.end()}});
}

void AnswerListener::OnFinish(std::uint32_t choice, engine::FinishReason reason,
                              std::string_view rest) {
  Push(FinishNews{choice, reason, std::string(rest)});
}

void AnswerListener::OnDone(const base::Result<engine::Usage>& usage) {
  Push(DoneNews{usage});
  delete this;
}

void AnswerListener::OnLogits(std::uint32_t /*choice*/, std::size_t /*position*/,
                              std::span<const float> row) {
  if (!want_logits_) return;
  want_logits_ = false;
  Push(LogitsNews{{row.begin(), row.end()}});
}

}  // namespace kvasir::server
