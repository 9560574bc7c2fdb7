#include "engine/scheduler.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "base/hash.h"
#include "constraints/drawable_tokens.h"
#include "engine/sequence_pool.h"

namespace kvasir::engine {

using base::ErrorCode;
using base::MakeError;

namespace {

std::uint64_t TenantOf(const std::string& cache_salt) {
  if (cache_salt.empty()) return 0;
  return std::max<std::uint64_t>(1, base::HashSpan64(std::span<const char>(cache_salt)));
}

}  // namespace

// ------------------------------------------------------------------ requests

base::Result<std::unique_ptr<Scheduler>> Scheduler::Make(const model::Model& model,
                                                         const tokenizer::Vocabulary& vocabulary,
                                                         base::ThreadTeam& team,
                                                         const SchedulerOptions& options) {
  KV_CHECK(vocabulary.size() == model.shape().vocab);
  if (options.fairness_quantum == 0 || options.fairness_quantum > (std::uint64_t{1} << 32)) {
    return MakeError(ErrorCode::kUsage, "a fairness quantum of {} tokens: it must be 1 to 2^32",
                     options.fairness_quantum);
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
      options_(options),
      clock_(options.clock == nullptr ? Clock::Steady() : *options.clock),
      cache_(std::move(cache)),
      capacity_blocks_(cache_->pool_stats().capacity_blocks),
      drawable_(constraints::DefaultMask(vocabulary)),
      waiting_(options.waiting),
      queue_(options.fairness_quantum),
      batch_(model, team, *cache_, options.work, options.busy_step_tokens) {}

Scheduler::~Scheduler() = default;

base::Result<void> Scheduler::Check(const EngineRequest& request) const {
  const GenerateRequest& generate = request.generate;
  KV_TRY(CheckRequest(generate, model_.shape()));
  const std::uint64_t positions = MostPositions(generate, model_.shape());
  if (cache_->geometry().BlocksFor(positions) <= capacity_blocks_) return base::Success();
  return CheckBudget(model_.shape(), options_.work, positions);
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

// ------------------------------------------------------------------ starting

std::unique_ptr<Choice> Scheduler::MakeChoice(const ActiveRequest& request,
                                              std::uint64_t number) const {
  return std::make_unique<Choice>(
      request.generate(), request.generate().first_choice + static_cast<std::uint32_t>(number),
      model_.shape(), vocabulary_, request.own_drawable ? *request.own_drawable : drawable_);
}

void Scheduler::ExpireDeadlines() {
  const std::uint64_t now = Now();
  std::vector<RequestId> over;
  for (const auto& [deadline, id] : deadlines_) {
    if (deadline > now) break;
    over.push_back(id);
  }
  for (const RequestId id : over) {
    ActiveRequest& request = requests_.at(id);
    if (!request.stopping()) EndEarly(request, FinishReason::kDeadline);
  }
}

void Scheduler::Admit() {
  if (!batch_.ResumeWaiting()) return;
  while (batch_.HasSlot()) {
    const std::optional<RequestId> next = queue_.Next();
    if (!next) return;
    ActiveRequest& request = requests_.at(*next);
    if (request.stopping()) {
      queue_.Remove(*request.account, *next);
      continue;
    }
    // Of a choice whose stem is computed, the last, partly filled block may be copied.
    const std::size_t tokens = request.stem != nullptr ? 1 : request.generate().prompt.size() + 1;
    if (!batch_.empty() && !batch_.HasRoomFor(tokens)) return;
    if (request.stem != nullptr) {
      StartFromStem(request);
    } else {
      StartFromPrompt(request);
    }
  }
}

void Scheduler::StartFromPrompt(ActiveRequest& request) {
  const GenerateRequest& generate = request.generate();
  if (!std::exchange(request.started, true)) {
    waiting_.Leave(request.request.client, generate.prompt.size());
    counts_.prompt_tokens += generate.prompt.size();
  }
  queue_.Charge(*request.account, generate.prompt.size());
  auto choice = MakeChoice(request, request.next_choice);
  // Choices of a request begin alike: if one is finished at its start, all are.
  if (choice->finished()) {
    ChoiceStarted(request);
    TellFinished(request, choice->index(), *choice->finish(), {});
    return;
  }
  const bool first = request.next_choice == 0;
  auto sequence = std::make_unique<BatchSequence>(
      BatchSequence{.owner = &request,
                    .choice = std::move(choice),
                    .lease = SequenceLease(*cache_, cache_->Create(request.tenant_salt)),
                    .stem = options_.work.use_cache && generate.choices > 1});
  if (generate.prompt_logprobs && generate.prompt.size() > 1 && first) {
    sequence->scores.emplace(generate, vocabulary_.size());
  }
  if (sequence->stem) {
    queue_.Remove(*request.account, request.id);  // Until it is computed.
  } else {
    ChoiceStarted(request);
  }
  batch_.Add(std::move(sequence));
}

void Scheduler::StartFromStem(ActiveRequest& request) {
  queue_.Charge(*request.account, 1);
  const std::size_t vocab = vocabulary_.size();
  BatchSequence& stem = *request.stem;
  auto choice = MakeChoice(request, request.next_choice);
  std::uint64_t last_token_us = 0;
  ChoiceStarted(request);
  for (std::size_t begin = 0; begin < stem.rows.size() && !choice->finished(); begin += vocab) {
    Give(request, *choice, last_token_us, std::span(stem.rows).subspan(begin, vocab));
  }
  if (!request.stopping() && !choice->finished()) {
    batch_.Add(std::make_unique<BatchSequence>(BatchSequence{.owner = &request,
                                                             .choice = std::move(choice),
                                                             .lease = batch_.ForkStem(stem),
                                                             .fresh = false,
                                                             .last_token_us = last_token_us}));
  }
  if (request.next_choice == request.generate().choices) {
    batch_.DropStem(&stem);
    request.stem = nullptr;
  }
}

void Scheduler::ChoiceStarted(ActiveRequest& request) {
  if (++request.next_choice == request.generate().choices) {
    queue_.Remove(*request.account, request.id);
  }
}

// ------------------------------------------------------------------ a step

bool Scheduler::Step(StepTrace* trace) {
  KV_CHECK(!in_step_);
  in_step_ = true;
  last_step_ = {};
  now_us_ = Now();
  ExpireDeadlines();
  Sweep();
  Admit();
  Sweep();
  if (!batch_.empty()) RunStep(trace);
  Sweep();
  in_step_ = false;
  return has_work();
}

void Scheduler::RunStep(StepTrace* trace) {
  const std::uint64_t start_us = Now();
  const std::vector<StepShare> shares = batch_.Compute();
  now_us_ = Now();
  last_step_ = {};
  for (const StepShare& share : shares) TakeRows(share);
  batch_.Settle(shares);
  Account(shares, start_us);
  if (trace != nullptr) FillTrace(*trace);
  for (BatchSequence* stem : batch_.TakeStems()) {
    ActiveRequest& request = *stem->owner;
    if (request.stopping()) continue;
    request.stem = stem;
    queue_.PushBegun(*request.account, request.id);
  }
  batch_.DropEnded();
}

void Scheduler::TakeRows(const StepShare& share) {
  BatchSequence& sequence = *share.sequence;
  ActiveRequest& request = *sequence.owner;
  if (request.stopping()) return;
  if (share.error) return Fail(request, *share.error);
  const std::size_t vocab = vocabulary_.size();
  const std::size_t prompt_rows = request.generate().prompt.size() - 1;
  std::size_t position = share.end - share.rows;
  for (std::size_t begin = 0; begin < share.logits.size(); begin += vocab, ++position) {
    if (request.stopping()) return;
    const std::span<const float> row = share.logits.subspan(begin, vocab);
    if (position < prompt_rows) {
      const auto scored = sequence.scores->Take(position, row);
      if (!scored) return Fail(request, scored.error());
    } else if (sequence.stem) {
      sequence.rows.insert(sequence.rows.end(), row.begin(), row.end());
    } else if (!sequence.choice->finished()) {  // A stop string may leave forced tokens over.
      Give(request, *sequence.choice, sequence.last_token_us, row);
    }
  }
  if (sequence.scores && !request.ended && sequence.scores->LeaveWith(*cache_, sequence.id())) {
    request.listener->OnPromptScored(sequence.scores->tokens());
    sequence.scores.reset();
  }
}

void Scheduler::Give(ActiveRequest& request, Choice& choice, std::uint64_t& last_token_us,
                     std::span<const float> row) {
  if (request.stopping()) return;
  const std::uint32_t index = choice.index();
  request.listener->OnLogits(index, choice.first_row(), row);
  const auto settled = choice.Take(row);
  if (!settled) return Fail(request, settled.error());
  ++last_step_.tokens;
  ++counts_.generated_tokens;
  ++request.usage.completion_tokens;
  queue_.Charge(*request.account, 1);
  if (!std::exchange(request.told_first_token, true)) {
    counts_.first_token_us.Add(now_us_ - request.submitted_us);
  }
  if (last_token_us != 0 && last_token_us != now_us_) {
    counts_.inter_token_us.Add(now_us_ - last_token_us);
  }
  last_token_us = now_us_;
  const Choice::Settled& step = settled.value();
  request.listener->OnToken({index, step.token, step.text, choice.finish()});
  if (choice.finished()) TellFinished(request, index, *choice.finish(), {});
}

void Scheduler::Account(std::span<const StepShare> shares, std::uint64_t start_us) {
  for (const StepShare& share : shares) {
    if (share.error) continue;
    last_step_.work += WorkOf(share.begin, share.end);
    if (share.complete) last_step_.work_without_cache += WorkOf(0, share.end);
    if (share.prefill) last_step_.prefill_positions += share.end - share.begin;
  }
  last_step_.sequences = shares.size();
  last_step_.pool = cache_->pool_stats();
  last_step_.elapsed_us = Now() - start_us;
  counts_.computed_positions += last_step_.work.positions;
  ++counts_.steps;
  counts_.step_us.Add(last_step_.elapsed_us);
}

// ------------------------------------------------------------------ reports

void Scheduler::FillTrace(StepTrace& trace) const {
  trace.step = counts_.steps;
  trace.sequences = last_step_.sequences;
  trace.tokens = last_step_.tokens;
  trace.work = last_step_.work;
  trace.work_without_cache = last_step_.work_without_cache;
  trace.held_bytes = last_step_.pool.live_bytes;
  trace.shared_bytes = last_step_.pool.shared_bytes;
  trace.idle_bytes = last_step_.pool.idle_bytes;
  const std::uint32_t layers = cache_->geometry().layers();
  trace.held_bytes_per_layer.assign(layers, trace.held_bytes / layers);  // Layers are alike.
  trace.waste_bytes = cache_->report().waste_bytes;
  trace.tables.clear();
  for (const BatchSequence* sequence : batch_.Sequences()) {
    SequenceTrace& table = trace.tables.emplace_back();
    table.request = static_cast<std::uint64_t>(sequence->owner->id);
    table.choice = sequence->choice->index();
    table.stem = sequence->stem;
    const kvcache::CachedSequence& cached = std::as_const(*cache_).cache(sequence->id());
    table.length = cached.length();
    for (const kvcache::BlockId block : cached.blocks()) table.blocks.push_back(block.index());
  }
}

std::vector<SequenceSnapshot> Scheduler::Sequences() const {
  std::vector<SequenceSnapshot> all;
  for (const BatchSequence* sequence : batch_.Sequences()) {
    const kvcache::CachedSequence& cached = std::as_const(*cache_).cache(sequence->id());
    SequenceSnapshot snapshot = {.request = sequence->owner->id,
                                 .client = sequence->owner->request.client,
                                 .cache_salt = sequence->owner->request.cache_salt,
                                 .choice = sequence->choice->index(),
                                 .stem = sequence->stem,
                                 .length = cached.length(),
                                 .blocks = {},
                                 .references = {}};
    for (const kvcache::BlockId block : cached.blocks()) {
      snapshot.blocks.push_back(block.index());
      snapshot.references.push_back(cache_->pool_references(block));
    }
    all.push_back(std::move(snapshot));
  }
  return all;
}

Metrics Scheduler::metrics() const {
  Metrics metrics = counts_;
  metrics.waiting = waiting_.load();
  metrics.refused = waiting_.refused();
  metrics.requests = requests_.size();
  metrics.running = batch_.running();
  metrics.preempted = batch_.preempted();
  metrics.clients = queue_.clients();
  metrics.cache = cache_->pool_stats();
  metrics.preemptions = batch_.preemptions();
  return metrics;
}

void Scheduler::CheckInvariants() const {
  cache_->CheckInvariants();
  QueueLoad waiting;
  std::uint64_t sequences = 0;
  for (const auto& [id, request] : requests_) {
    KV_CHECK(!request.stopping() && request.unfinished > 0);
    if (!request.started) {
      ++waiting.requests;
      waiting.prompt_tokens += request.generate().prompt.size();
    }
    sequences += batch_.Of(request).size();
  }
  KV_CHECK(waiting.requests <= waiting_.load().requests);  // Others may have reserved.
  KV_CHECK(waiting.prompt_tokens <= waiting_.load().prompt_tokens);
  const kvcache::ManagerReport cache = cache_->report();
  KV_CHECK(cache.running + cache.preempted == sequences);
  KV_CHECK(!requests_.empty() || cache.pool.live_blocks == 0);
}

}  // namespace kvasir::engine
