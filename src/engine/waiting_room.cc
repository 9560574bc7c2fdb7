#include "engine/waiting_room.h"

#include "base/check.h"

namespace kvasir::engine {

using base::ErrorCode;
using base::MakeError;

base::Result<void> WaitingRoom::Check(const std::string& client,
                                      std::uint64_t prompt_tokens) const {
  if (load_.requests >= limits_.requests) {
    return MakeError(ErrorCode::kExhausted, "{} requests wait already, which is the most allowed",
                     load_.requests);
  }
  const auto found = of_client_.find(client);
  const std::uint64_t of_client = found == of_client_.end() ? 0 : found->second;
  if (of_client >= limits_.requests_per_client) {
    return MakeError(ErrorCode::kExhausted,
                     "{} requests of this client wait already, which is the most allowed",
                     of_client);
  }
  if (load_.requests > 0 && (load_.prompt_tokens > limits_.prompt_tokens ||
                             prompt_tokens > limits_.prompt_tokens - load_.prompt_tokens)) {
    return MakeError(ErrorCode::kExhausted,
                     "prompts of {} tokens wait already: {} more would be over the {} allowed",
                     load_.prompt_tokens, prompt_tokens, limits_.prompt_tokens);
  }
  return base::Success();
}

base::Result<void> WaitingRoom::Enter(const std::string& client, std::uint64_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  if (auto checked = Check(client, prompt_tokens); !checked) {
    ++refused_;
    return checked;
  }
  ++of_client_[client];
  ++load_.requests;
  load_.prompt_tokens += prompt_tokens;
  return base::Success();
}

base::Result<void> WaitingRoom::CheckOpen(const std::string& client) {
  const std::lock_guard lock(mutex_);
  auto checked = Check(client, 0);
  if (!checked) ++refused_;
  return checked;
}

void WaitingRoom::Leave(const std::string& client, std::uint64_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  const auto found = of_client_.find(client);
  KV_CHECK(found != of_client_.end() && load_.prompt_tokens >= prompt_tokens);
  if (--found->second == 0) of_client_.erase(found);
  --load_.requests;
  load_.prompt_tokens -= prompt_tokens;
}

QueueLoad WaitingRoom::load() const {
  const std::lock_guard lock(mutex_);
  return load_;
}

std::uint64_t WaitingRoom::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace kvasir::engine
