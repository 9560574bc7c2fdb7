// Scheduler: starting requests, and what a step does with its rows.
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "engine/scheduler.h"

namespace kvasir::engine {

// ------------------------------------------------------------------ starting

std::unique_ptr<Choice> Scheduler::MakeChoice(const ActiveRequest& request,
                                              std::uint64_t number) const {
  return std::make_unique<Choice>(
      request.generate(), request.generate().first_choice + static_cast<std::uint32_t>(number),
      shape_, vocabulary_, request.own_drawable ? *request.own_drawable : drawable_);
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
                                                             .start = stem.start,
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
  if (!batch_.empty()) {
    TellObserver();  // Of what came without computing: it need not wait for the step.
    RunStep(trace);
  }
  Sweep();
  TellObserver();
  in_step_ = false;
  return has_work();
}

void Scheduler::RunStep(StepTrace* trace) {
  const std::uint64_t start_us = Now();
  const std::vector<StepShare> shares = batch_.Compute();
  if (shares.empty()) return;
  now_us_ = Now();
  last_step_ = {};
  PrepareDraws(shares);
  for (const StepShare& share : shares) {
    share.sequence->owner->usage.cached_tokens += share.cached;
    counts_.cached_tokens += share.cached;
    TakeRows(share);
  }
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

// Draws are the one part of a step beside the model that takes time: each choice's own, so that
// threads may share them.
void Scheduler::PrepareDraws(std::span<const StepShare> shares) {
  std::vector<const StepShare*> drawing;
  for (const StepShare& share : shares) {
    const BatchSequence& sequence = *share.sequence;
    const bool decides = share.rows == 1 && share.complete && !share.error;
    if (decides && !sequence.stem && !sequence.scores && !sequence.owner->stopping()) {
      drawing.push_back(&share);
    }
  }
  if (drawing.size() < 2) return;
  team_.Run([&](base::Member& member) {
    const base::IndexRange range = member.Share(drawing.size());
    for (std::size_t i = range.begin; i < range.end; ++i) {
      drawing[i]->sequence->choice->Prepare(drawing[i]->logits);
    }
  });
}

void Scheduler::TakeRows(const StepShare& share) {
  BatchSequence& sequence = *share.sequence;
  ActiveRequest& request = *sequence.owner;
  if (request.stopping()) return;
  if (share.error) return Fail(request, *share.error);
  const std::size_t vocab = vocabulary_.size();
  const std::size_t prompt_rows = request.generate().prompt.size() - 1;
  std::size_t position = sequence.start + share.end - share.rows;
  for (std::size_t begin = 0; begin < share.logits.size(); begin += vocab, ++position) {
    if (request.stopping()) return;
    const std::span<const float> row = share.logits.subspan(begin, vocab);
    if (position < prompt_rows) {
      const auto scored = sequence.scores->Take(position, row);
      if (!scored) return Fail(request, scored.error());
      continue;
    }
    TellScores(sequence);  // First: the row may end the request.
    if (sequence.stem) {
      sequence.rows.insert(sequence.rows.end(), row.begin(), row.end());
    } else if (!sequence.choice->finished()) {  // A stop string may leave forced tokens over.
      Give(request, *sequence.choice, sequence.last_token_us, row);
    }
  }
  TellScores(sequence);
}

void Scheduler::TellScores(BatchSequence& sequence) {
  ActiveRequest& request = *sequence.owner;
  if (!sequence.scores || request.ended) return;
  if (!sequence.scores->LeaveWith(*cache_, sequence.id())) return;
  request.listener->OnPromptScored(sequence.scores->tokens());
  sequence.scores.reset();
}

void Scheduler::Give(ActiveRequest& request, Choice& choice, std::uint64_t& last_token_us,
                     std::span<const float> row) {
  if (request.stopping()) return;
  const std::uint32_t index = choice.index();
  request.listener->OnLogits(index, choice.settled() - 1, row);
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
  batch_.Took(shares, last_step_.elapsed_us);
  counts_.computed_positions += last_step_.work.positions;
  ++counts_.steps;
  counts_.step_us.Add(last_step_.elapsed_us);
}

}  // namespace kvasir::engine
