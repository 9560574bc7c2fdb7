#include "server/answer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace kvasir::server {

void EventQueue::OnTold() {
  if (told_.empty()) return;
  const bool urgent = std::exchange(told_urgent_, false);
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    wakes = crossed_.empty() || (urgent && !crossed_urgent_);
    crossed_urgent_ = crossed_urgent_ || urgent;
    if (crossed_.empty()) {
      crossed_.swap(told_);
    } else {
      std::move(told_.begin(), told_.end(), std::back_inserter(crossed_));
    }
  }
  told_.clear();
  if (wakes) wake_(urgent);
}

void EventQueue::TakeAll(std::vector<EngineEvent>& taken) {
  KV_CHECK(taken.empty());
  const std::lock_guard lock(mutex_);
  crossed_.swap(taken);
  crossed_urgent_ = false;
}

bool Answer::Take(EngineEvent event) {
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
  return !std::exchange(changed_, true);
}

void Answer::Changed() {
  if (std::exchange(changed_, false) && on_change) on_change();
}

void AnswerListener::OnToken(const engine::TokenStep& step) {
  const bool first = !std::exchange(told_token_, true);
  Push(TokenNews{step.choice, step.token, std::string(step.text), step.finish}, first);
}

void AnswerListener::OnPromptScored(std::span<const engine::GeneratedToken> tokens) {
  Push(ScoredNews{{tokens.begin(), tokens.end()}}, false);
}

void AnswerListener::OnFinish(std::uint32_t choice, engine::FinishReason reason,
                              std::string_view rest) {
  Push(FinishNews{choice, reason, std::string(rest)}, false);
}

void AnswerListener::OnDone(const base::Result<engine::Usage>& usage) {
  Push(DoneNews{usage}, true);
  delete this;
}

void AnswerListener::OnLogits(std::uint32_t /*choice*/, std::size_t /*position*/,
                              std::span<const float> row) {
  if (!want_logits_) return;
  want_logits_ = false;
  Push(LogitsNews{{row.begin(), row.end()}}, false);
}

}  // namespace kvasir::server
