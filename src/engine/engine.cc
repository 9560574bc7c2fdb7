#include "engine/engine.h"

#include <system_error>

#include "base/check.h"

namespace kvasir::engine {

using base::ErrorCode;
using base::MakeError;

base::Result<std::unique_ptr<Engine>> Engine::Make(const model::Model& model,
                                                   const tokenizer::Vocabulary& vocabulary,
                                                   base::ThreadTeam& team,
                                                   const SchedulerOptions& options) {
  KV_TRY(auto scheduler, Scheduler::Make(model, vocabulary, team, options));
  const Clock& clock = options.clock == nullptr ? Clock::Steady() : *options.clock;
  std::unique_ptr<Engine> engine(new Engine(std::move(scheduler), clock));
  try {
    engine->thread_ = std::thread([&engine = *engine] { engine.Loop(); });
  } catch (const std::system_error& error) {
    return MakeError(ErrorCode::kExhausted, "the system starts no thread for the engine: {}",
                     error.what());
  }
  return engine;
}

Engine::Engine(std::unique_ptr<Scheduler> scheduler, const Clock& clock)
    : scheduler_(std::move(scheduler)), clock_(clock) {}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

base::Result<RequestId> Engine::Submit(EngineRequest request, Listener* listener) {
  KV_CHECK(listener != nullptr);
  KV_TRY(scheduler_->Check(request));
  RequestId id{};
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || drain_us_) {
      return MakeError(ErrorCode::kCancelled, "the engine is shutting down: it takes no requests");
    }
    KV_TRY(scheduler_->Reserve(request));
    id = RequestId{++submitted_};
    commands_.emplace_back(Submission{id, std::move(request), listener});
    idle_ = false;
  }
  wake_.notify_one();
  return id;
}

void Engine::Cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    commands_.emplace_back(id);
    idle_ = false;
  }
  wake_.notify_one();
}

bool Engine::Drain(std::uint64_t deadline_us) {
  std::unique_lock lock(mutex_);
  drain_us_ = drain_us_ ? std::min(*drain_us_, deadline_us) : deadline_us;
  wake_.notify_one();
  ready_.wait(lock, [&] { return idle_; });
  return !drain_cancelled_;
}

void Engine::Observe(std::shared_ptr<StepObserver> observer) {
  const std::lock_guard lock(mutex_);
  observer_ = std::move(observer);
}

EngineSnapshot Engine::Snapshot(const std::string* kept_of) {
  Wanted wanted = {kept_of, std::nullopt};
  std::unique_lock lock(mutex_);
  wanted_.push_back(&wanted);
  wake_.notify_one();
  ready_.wait(lock, [&] { return wanted.snapshot.has_value(); });
  return *std::move(wanted.snapshot);
}

void Engine::Call(const std::function<void(Scheduler&)>& work) {
  bool done = false;
  std::unique_lock lock(mutex_);
  commands_.emplace_back(Work{&work, &done});
  idle_ = false;
  wake_.notify_one();
  ready_.wait(lock, [&] { return done; });
}

void Engine::FillSnapshots() {
  if (wanted_.empty()) return;
  const EngineSnapshot now = {
      scheduler_->metrics(), scheduler_->Sequences(), scheduler_->cache_report(), {}};
  for (Wanted* wanted : wanted_) {
    wanted->snapshot = now;
    if (wanted->kept_of != nullptr)
      wanted->snapshot->kept = scheduler_->KeptBlocks(*wanted->kept_of);
  }
  wanted_.clear();
  ready_.notify_all();
}

void Engine::RunCommands(std::vector<Command> commands) {
  for (Command& command : commands) {
    if (auto* submission = std::get_if<Submission>(&command)) {
      const RequestId id =
          scheduler_->Enqueue(std::move(submission->request), submission->listener);
      KV_CHECK(id == submission->id);
    } else if (const auto* work = std::get_if<Work>(&command)) {
      (*work->work)(*scheduler_);
      {
        const std::lock_guard lock(mutex_);
        *work->done = true;
      }
      ready_.notify_all();
    } else {
      scheduler_->Cancel(std::get<RequestId>(command));
    }
  }
}

void Engine::Loop() {
  bool more = false;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return more || stopping_ || !commands_.empty() || !wanted_.empty(); });
    const bool stops = stopping_;
    const bool cancels = stops || (drain_us_ && clock_.Now() >= *drain_us_);
    std::vector<Command> commands = std::exchange(commands_, {});
    const std::shared_ptr<StepObserver> observer = observer_;
    lock.unlock();  // Listeners may submit and cancel.
    scheduler_->Observe(observer.get());
    RunCommands(std::move(commands));
    const bool cut = cancels && scheduler_->has_work();
    if (cut) scheduler_->CancelAll();
    more = scheduler_->Step();
    scheduler_->Observe(nullptr);
    lock.lock();
    drain_cancelled_ = drain_cancelled_ || cut;
    FillSnapshots();
    idle_ = !more && commands_.empty();
    if (idle_) ready_.notify_all();
    if (stops && idle_) return;
  }
}

}  // namespace kvasir::engine
