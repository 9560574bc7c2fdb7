#include "engine/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace kvasir::engine {
namespace {

// What a run has come to, told by the listeners of its requests.
struct RunState {
  const Observer& observer;
  GenerateReport report;
  std::optional<base::Error> error;  // The first one, which ends the run.
  bool many = false;                 // Errors name their request.

  void Fail(std::size_t request, base::Error wrong) {
    if (error) return;
    if (many) wrong.message = fmt::format("prompt {}: {}", request + 1, wrong.message);
    error = std::move(wrong);
  }
};

// Gathers one request's results.
class ResultListener : public Listener {
 public:
  ResultListener(RunState& run, std::size_t request, const GenerateRequest& asked)
      : run_(run), request_(request), first_choice_(asked.first_choice) {
    run.report.usage.prompt_tokens += asked.prompt.size();
    RequestResult& result = run.report.results[request];
    result.choices.resize(asked.choices);
    for (std::size_t i = 0; i < asked.choices; ++i) {
      result.choices[i].index = first_choice_ + static_cast<std::uint32_t>(i);
    }
  }

  void OnLogits(std::uint32_t choice, std::size_t position, std::span<const float> row) override {
    if (run_.error || !run_.observer.on_logits) return;
    run_.observer.on_logits({request_, choice, position, row});
  }
  void OnToken(const TokenStep& step) override {
    if (run_.error) return;
    ++run_.report.usage.completion_tokens;
    ChoiceResult& result = Result(step.choice);
    result.text += step.text;
    result.tokens.push_back(step.token);
    if (!run_.observer.on_token) return;
    const auto told =
        run_.observer.on_token({request_, step.choice, step.token, step.text, step.finish});
    if (!told) run_.error = told.error();
  }
  void OnPromptScored(std::span<const GeneratedToken> tokens) override {
    run_.report.results[request_].prompt.assign(tokens.begin(), tokens.end());
  }
  void OnFinish(std::uint32_t choice, FinishReason reason, std::string_view) override {
    Result(choice).finish = reason;
  }
  void OnDone(const base::Result<Usage>& usage) override {
    if (usage) {
      run_.report.usage.cached_tokens += usage.value().cached_tokens;
    } else {
      run_.Fail(request_, usage.error());
    }
  }

 private:
  ChoiceResult& Result(std::uint32_t choice) {
    return run_.report.results[request_].choices[choice - first_choice_];
  }

  RunState& run_;
  const std::size_t request_;
  const std::uint32_t first_choice_;
};

void AddStep(const StepNumbers& step, GenerateReport& report) {
  ++report.steps;
  report.work += step.work;
  const double elapsed_ms = static_cast<double>(step.elapsed_us) / 1000.0;
  const double part = step.work.positions == 0 ? 0.0
                                               : static_cast<double>(step.prefill_positions) /
                                                     static_cast<double>(step.work.positions);
  report.timing.prefill_ms += elapsed_ms * part;
  report.timing.decode_ms += elapsed_ms * (1.0 - part);
  report.peak_bytes = std::max(report.peak_bytes, step.pool.live_bytes);
  report.peak_shared_bytes = std::max(report.peak_shared_bytes, step.pool.shared_bytes);
  report.peak_saved_bytes = std::max(report.peak_saved_bytes, step.pool.saved_bytes());
}

}  // namespace

base::Result<std::unique_ptr<Generator>> Generator::Make(const model::Model& model,
                                                         const tokenizer::Vocabulary& vocabulary,
                                                         base::ThreadTeam& team,
                                                         const GeneratorOptions& options) {
  KV_TRY(auto made, Scheduler::Make(model, vocabulary, team,
                                    {.work = options, .waiting = WaitingLimits::None()}));
  return std::unique_ptr<Generator>(new Generator(std::move(made)));
}

base::Result<GenerateReport> Generator::Run(std::span<const GenerateRequest> requests,
                                            const Observer& observer) {
  RunState run = {.observer = observer, .report = {}, .error = {}, .many = requests.size() > 1};
  for (std::size_t i = 0; i < requests.size() && !run.error; ++i) {
    if (auto checked = scheduler_->Check({.generate = requests[i]}); !checked) {
      run.Fail(i, checked.error());
    }
  }
  if (run.error) return *std::move(run.error);
  GenerateReport& report = run.report;
  report.results.resize(requests.size());
  report.bytes_per_token = scheduler_->geometry().bytes_per_token();
  const std::uint64_t preemptions_before = scheduler_->metrics().preemptions;
  std::vector<ResultListener> listeners;
  listeners.reserve(requests.size());
  std::uint64_t first_id = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    listeners.emplace_back(run, i, requests[i]);
    KV_TRY(const RequestId id, scheduler_->Submit({.generate = requests[i]}, &listeners.back()));
    if (i == 0) first_id = static_cast<std::uint64_t>(id);
  }
  for (bool more = !requests.empty(); more && !run.error;) {
    StepTrace trace;
    more = scheduler_->Step(observer.on_step ? &trace : nullptr);
    if (scheduler_->last_step().sequences == 0 || run.error) continue;
    AddStep(scheduler_->last_step(), report);
    if (!observer.on_step) continue;
    trace.step = report.steps;
    for (SequenceTrace& table : trace.tables) table.request -= first_id;
    observer.on_step(trace);
    report.trace.push_back(std::move(trace));
  }
  scheduler_->CancelAll();
  if (run.error) return *std::move(run.error);
  const Metrics metrics = scheduler_->metrics();
  report.preemptions = metrics.preemptions - preemptions_before;
  report.idle_bytes = metrics.cache.idle_bytes;
  return std::move(report);
}

}  // namespace kvasir::engine
