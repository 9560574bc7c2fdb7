#include "engine/scheduler.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "base/hash.h"
#include "constraints/drawable_tokens.h"
#include "engine/sequence_pool.h"
#include "kvcache/prefix_restore.h"

namespace kvasir::engine {

using base::ErrorCode;
using base::MakeError;

base::Result<std::unique_ptr<Scheduler>> Scheduler::Make(const model::Model& model,
                                                         const tokenizer::Vocabulary& vocabulary,
                                                         base::ThreadTeam& team,
                                                         const SchedulerOptions& options) {
  KV_CHECK(vocabulary.size() == model.shape().vocab);
  if (options.fairness_quantum == 0 || options.fairness_quantum > (std::uint64_t{1} << 32)) {
    return MakeError(ErrorCode::kUsage, "a fairness quantum of {} tokens: it must be 1 to 2^32",
                     options.fairness_quantum);
  }
  if (options.busy_step_time != 0 && !(options.busy_step_time >= 1)) {
    return MakeError(ErrorCode::kUsage,
                     "a busy step of {} times the time of another: it must be 0, or at least 1",
                     options.busy_step_time);
  }
  KV_TRY(auto cache, MakeSequenceManager(model.shape(), options.work));
  return std::unique_ptr<Scheduler>(
      new Scheduler(model, vocabulary, team, options, std::move(cache)));
}

Scheduler::Scheduler(const model::Model& model, const tokenizer::Vocabulary& vocabulary,
                     base::ThreadTeam& team, const SchedulerOptions& options,
                     std::unique_ptr<kvcache::SequenceManager> cache)
    : model_(model),
      vocabulary_(vocabulary),
      team_(team),
      options_(options),
      clock_(options.clock == nullptr ? Clock::Steady() : *options.clock),
      cache_(std::move(cache)),
      shape_(ShapeServed(model.shape(), options.work).value()),
      drawable_(constraints::DefaultMask(vocabulary)),
      waiting_(options.waiting),
      queue_(options.fairness_quantum),
      batch_(model, team, *cache_, options.work,
             {.most_tokens = options.busy_step_tokens, .most_time = options.busy_step_time}) {}

Scheduler::~Scheduler() = default;

std::uint64_t Scheduler::TenantOf(const std::string& cache_salt) {
  if (cache_salt.empty()) return 0;
  return std::max<std::uint64_t>(1, base::HashSpan64(std::span<const char>(cache_salt)));
}

base::Result<void> Scheduler::Check(const EngineRequest& request) const {
  const GenerateRequest& generate = request.generate;
  KV_TRY(CheckRequest(generate, shape_));
  if (!options_.work.kv_budget_bytes) return base::Success();  // Made for any text.
  return CheckBudget(cache_->geometry(), options_.work, MostPositions(generate, shape_));
}

base::Result<void> Scheduler::Reserve(const EngineRequest& request) {
  KV_TRY(Check(request));
  return waiting_.Enter(request.client, request.generate.prompt.size());
}

base::Result<RequestId> Scheduler::Submit(EngineRequest request, Listener* listener) {
  KV_TRY(Reserve(request));
  return Enqueue(std::move(request), listener);
}

RequestId Scheduler::Enqueue(EngineRequest request, Listener* listener) {
  KV_CHECK(listener != nullptr);
  const RequestId id{++counts_.accepted};
  const std::uint64_t choices = request.generate.choices;
  ActiveRequest& active =
      requests_
          .emplace(id, ActiveRequest{.id = id,
                                     .request = std::move(request),
                                     .listener = listener,
                                     .finished = std::vector<bool>(choices, false),
                                     .unfinished = choices})
          .first->second;
  active.tenant_salt = TenantOf(active.request.cache_salt);
  active.submitted_us = Now();
  active.usage.prompt_tokens = active.generate().prompt.size();
  if (active.generate().named_end_tokens) {
    active.own_drawable = drawable_;
    for (const TokenId token : active.generate().end_tokens) active.own_drawable->Allow(token);
  }
  if (active.request.deadline_us) deadlines_.emplace(*active.request.deadline_us, id);
  active.account = &queue_.Join(active.request.client);
  queue_.Push(*active.account, id);
  return id;
}

std::size_t Scheduler::ExportBlocks(const std::string& cache_salt, std::span<const TokenId> text,
                                    kvcache::BlockStore& to) {
  return cache_->Export(TenantOf(cache_salt), text, to);
}

std::size_t Scheduler::ImportBlocks(const std::string& cache_salt, std::span<const TokenId> text,
                                    kvcache::BlockStore& from) {
  return kvcache::ImportPrefix(*cache_, TenantOf(cache_salt), text, from);
}

bool Scheduler::Cancel(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end() || found->second.stopping()) return false;
  found->second.cancelled = true;
  ending_.push_back(id);
  if (!in_step_) Sweep();
  return true;
}

void Scheduler::CancelAll() {
  std::vector<RequestId> ids;
  for (const auto& [id, request] : requests_) ids.push_back(id);
  for (const RequestId id : ids) Cancel(id);
}

void Scheduler::TellFinished(ActiveRequest& request, std::uint32_t choice, FinishReason reason,
                             std::string_view rest) {
  const std::uint32_t number = choice - request.generate().first_choice;
  KV_CHECK(!request.finished[number]);
  request.finished[number] = true;
  ++counts_.finished[static_cast<std::size_t>(reason)];
  request.listener->OnFinish(choice, reason, rest);
  if (--request.unfinished > 0) return;
  MarkEnded(request);
  request.listener->OnDone(request.usage);
}

void Scheduler::MarkEnded(ActiveRequest& request) {
  request.ended = true;
  if (!request.cancelled) ending_.push_back(request.id);
}

void Scheduler::Fail(ActiveRequest& request, base::Error error) {
  ++counts_.failed;
  MarkEnded(request);
  request.listener->OnDone(std::move(error));
}

void Scheduler::EndEarly(ActiveRequest& request, FinishReason reason) {
  std::unordered_map<std::uint32_t, std::string> rests;
  for (BatchSequence* sequence : batch_.Of(request)) {
    Choice& choice = *sequence->choice;
    if (!sequence->stem && !choice.finished()) rests[choice.index()] = choice.Abandon(reason);
  }
  const std::uint32_t first = request.generate().first_choice;
  for (std::uint32_t number = 0; number < request.finished.size(); ++number) {
    if (!request.finished[number]) {
      TellFinished(request, first + number, reason, rests[first + number]);
    }
  }
}

void Scheduler::Sweep() {
  const bool outer = std::exchange(in_step_, true);  // Listeners may cancel what is swept next.
  while (!ending_.empty()) {
    const RequestId id = ending_.back();
    ending_.pop_back();
    ActiveRequest& request = requests_.at(id);
    if (!request.ended) EndEarly(request, FinishReason::kCancelled);
    batch_.Drop(request);
    queue_.Remove(*request.account, id);
    if (!request.started) waiting_.Leave(request.request.client, request.usage.prompt_tokens);
    if (request.request.deadline_us) deadlines_.erase({*request.request.deadline_us, id});
    queue_.Leave(*request.account);
    requests_.erase(id);
  }
  in_step_ = outer;
}

}  // namespace kvasir::engine
