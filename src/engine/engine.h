// Engine: a Scheduler on a thread of its own, for callers on any thread.
#ifndef KVASIR_ENGINE_ENGINE_H_
#define KVASIR_ENGINE_ENGINE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "engine/engine_request.h"
#include "engine/listener.h"
#include "engine/metrics.h"
#include "engine/scheduler.h"

namespace kvasir::engine {

struct EngineSnapshot {
  Metrics metrics;
  std::vector<SequenceSnapshot> sequences;
  kvcache::ManagerReport cache;
  std::vector<BlockSnapshot> kept;  // Where asked for: Scheduler::KeptBlocks.
};

// Steps while there is work and sleeps while there is none. Listener calls come on its thread and
// must not block; they may call Submit and Cancel, nothing else. Thread-safe. Borrows what a
// Scheduler borrows; the team is run by its thread only.
class Engine {
 public:
  // Errors as Scheduler::Make; kExhausted if the system starts no thread.
  static base::Result<std::unique_ptr<Engine>> Make(const model::Model& model,
                                                    const tokenizer::Vocabulary& vocabulary,
                                                    base::ThreadTeam& team,
                                                    const SchedulerOptions& options);
  // Cancels what is left, telling the listeners, and ends the thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // As Scheduler::Submit, at once: never waits for a step. The listener may be called before this
  // returns. kCancelled once it is draining.
  base::Result<RequestId> Submit(EngineRequest request, Listener* listener);
  // As Scheduler::CheckOpen: an overloaded server refuses before it reads what is asked.
  base::Result<void> CheckOpen(const std::string& client) { return scheduler_->CheckOpen(client); }
  // Ends a request within the current step; its listener is told. One that has ended is ignored.
  void Cancel(RequestId id);

  // Refuses requests from now on, and waits until those accepted have ended; cancels what is left
  // at this time of the clock. Returns whether nothing had to be cancelled.
  bool Drain(std::uint64_t deadline_us);

  // From the next step on: told on the engine's thread of what its listeners are told. Null:
  // nobody.
  void Observe(std::shared_ptr<StepObserver> observer);

  // What is held now; waits for the current step at most. kept_of: a salt whose kept blocks are
  // told too; null: none.
  EngineSnapshot Snapshot(const std::string* kept_of = nullptr);

  // Runs this on its thread between two steps, and waits until it has. Not from a listener.
  void Call(const std::function<void(Scheduler&)>& work);

  const Clock& clock() const { return clock_; }
  std::uint64_t Now() const { return clock_.Now(); }
  const kvcache::CacheGeometry& geometry() const { return scheduler_->geometry(); }

 private:
  struct Submission {
    RequestId id;
    EngineRequest request;
    Listener* listener;
  };
  struct Wanted {
    const std::string* kept_of;
    std::optional<EngineSnapshot> snapshot;
  };
  struct Work {
    const std::function<void(Scheduler&)>* work;
    bool* done;  // Under the mutex.
  };
  using Command = std::variant<Submission, RequestId, Work>;  // An id: to be cancelled.

  Engine(std::unique_ptr<Scheduler> scheduler, const Clock& clock);
  void Loop();
  // Tells the scheduler what has been asked for.
  void RunCommands(std::vector<Command> commands);
  void FillSnapshots();

  const std::unique_ptr<Scheduler> scheduler_;  // Its thread's, but what is thread-safe.
  const Clock& clock_;

  std::mutex mutex_;
  std::condition_variable wake_;   // Of the thread: there is something to do.
  std::condition_variable ready_;  // Of Drain and Snapshot.
  // Under the mutex:
  std::vector<Command> commands_;
  std::vector<Wanted*> wanted_;  // Snapshots that callers wait for.
  std::uint64_t submitted_ = 0;
  bool idle_ = true;                       // Nothing is asked for or being done.
  std::optional<std::uint64_t> drain_us_;  // Once draining: when to cancel what is left.
  bool drain_cancelled_ = false;
  bool stopping_ = false;
  std::shared_ptr<StepObserver> observer_;

  std::thread thread_;  // Last: it uses all the others.
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_ENGINE_H_
