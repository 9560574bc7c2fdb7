// Scheduler: many requests at once, one step of the model after another.
#ifndef KVASIR_ENGINE_SCHEDULER_H_
#define KVASIR_ENGINE_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_mask.h"
#include "engine/active_request.h"
#include "engine/batch.h"
#include "engine/clock.h"
#include "engine/engine_request.h"
#include "engine/fair_queue.h"
#include "engine/generator_options.h"
#include "engine/listener.h"
#include "engine/metrics.h"
#include "engine/trace.h"
#include "engine/waiting_room.h"
#include "kvcache/sequence_manager.h"
#include "model/model.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::engine {

struct SchedulerOptions {
  GeneratorOptions work = {};
  WaitingLimits waiting = {};  // Beyond them Submit refuses.
  // Most tokens of a step in which some text is being continued: how long a prompt may make it
  // wait. 0: work.step_tokens.
  std::uint64_t busy_step_tokens = 0;
  // How long, as a multiple of what the step would take without prompts (step_pacer.h). 0: no
  // limit; else at least 1.
  double busy_step_time = 0;
  // Tokens that a client may have done before it is the next one's turn.
  std::uint64_t fairness_quantum = 128;
  const Clock* clock = nullptr;  // Not owned. Null: Clock::Steady().
};

// Numbers of one step.
struct StepNumbers {
  std::uint64_t sequences = 0;  // In the step; 0: nothing was computed.
  std::uint64_t tokens = 0;     // Settled by it.
  WorkCounts work;
  WorkCounts work_without_cache;        // trace.h
  std::uint64_t prefill_positions = 0;  // Of those computed, before the first token of a text.
  std::uint64_t elapsed_us = 0;
  kvcache::BlockPoolStats
      pool;  // After it, before texts that ended with it gave their blocks back.
};

// A block of one cache group: of some layers and heads, for block_tokens positions.
struct BlockSnapshot {
  std::uint32_t block = 0;    // Its number; block storage is used again.
  std::uint32_t group = 0;    // Of the geometry's
  std::uint64_t begin = 0;    // Its first position in the text
  std::uint32_t holders = 0;  // Tables that hold it; 0: kept for texts to come.
  std::uint64_t hits = 0;     // Texts that began with it because it was there.
};

// The blocks of one sequence, and whose it is.
struct SequenceSnapshot {
  RequestId request;
  std::string client;
  std::string cache_salt;
  std::uint32_t choice = 0;
  bool stem = false;
  std::uint64_t length = 0;  // Positions computed.
  // By group, then by position; without those that no query can see any more.
  std::vector<BlockSnapshot> blocks;
};

// Requests arrive and end at any time; each step computes what the batch has room for: a token or
// more of every text being continued, and prompts in pieces with what is left. Prompts start from
// whatever any request has left in the cache, or is computing now. Out of blocks, the latest
// sequences give way and go on later.
//
// A request's answer is a function of the model and of its `generate` field: no other request, no
// option and no order of calls changes a bit of it. The schedule itself is a function of the calls
// and of what the clock says.
//
// Single-threaded, but Check, CheckOpen and Reserve. Borrows model, vocabulary, team and clock,
// which must outlive it.
class Scheduler {
 public:
  // kUsage for options that are not allowed.
  static base::Result<std::unique_ptr<Scheduler>> Make(const model::Model& model,
                                                       const tokenizer::Vocabulary& vocabulary,
                                                       base::ThreadTeam& team,
                                                       const SchedulerOptions& options);
  // Tells no listener: CancelAll before, if they are to know.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Whether the request can be computed at all. kUsage naming what is not allowed, also for a text
  // that may outgrow the cache's budget alone. Thread-safe.
  base::Result<void> Check(const EngineRequest& request) const;

  // Takes a request; the listener must live until its OnDone. The n-th request taken has id n.
  // Errors, by which nothing is taken: those of Check; kExhausted when too much waits already.
  base::Result<RequestId> Submit(EngineRequest request, Listener* listener);

  // The two halves of Submit: the first is thread-safe, and each of its successes must be followed
  // by one call of the second with the same request.
  base::Result<void> Reserve(const EngineRequest& request);
  // kExhausted if the queue is full for this client, whatever it asks. Thread-safe.
  base::Result<void> CheckOpen(const std::string& client) { return waiting_.CheckOpen(client); }
  RequestId Enqueue(EngineRequest request, Listener* listener);

  // Ends a request: its blocks are free and its listener has been told when this returns, or,
  // called by a listener, when the current step ends. What it has computed stays findable. False if
  // it has ended already.
  bool Cancel(RequestId id);
  void CancelAll();

  // Of all its listeners together; null: nobody. Must outlive the scheduler, or be replaced.
  void Observe(StepObserver* observer) { observer_ = observer; }

  // Ends what is over its deadline, starts what there is room for, and computes one step. Returns
  // whether there is work left. With trace: filled in, unless nothing was computed.
  bool Step(StepTrace* trace = nullptr);
  bool has_work() const { return !requests_.empty(); }
  const StepNumbers& last_step() const { return last_step_; }

  // Between steps, for requests of this salt: gives a store the cached blocks that this text can
  // start from, or takes them from there; waits for it. Returns how many positions they hold.
  std::size_t ExportBlocks(const std::string& cache_salt, std::span<const TokenId> text,
                           kvcache::BlockStore& to);
  std::size_t ImportBlocks(const std::string& cache_salt, std::span<const TokenId> text,
                           kvcache::BlockStore& from);

  std::uint64_t Now() const { return clock_.Now(); }
  Metrics metrics() const;
  std::vector<SequenceSnapshot> Sequences() const;  // Of all that hold blocks.
  // Blocks that nobody holds, found by texts of this salt; by position. Linear in the index.
  std::vector<BlockSnapshot> KeptBlocks(const std::string& cache_salt) const;
  kvcache::ManagerReport cache_report() const { return cache_->report(); }
  const kvcache::CacheGeometry& geometry() const { return cache_->geometry(); }
  // Aborts if an invariant of scheduler or cache does not hold. Linear in everything.
  void CheckInvariants() const;

 private:
  Scheduler(const model::Model& model, const tokenizer::Vocabulary& vocabulary,
            base::ThreadTeam& team, const SchedulerOptions& options,
            std::unique_ptr<kvcache::SequenceManager> cache);

  static std::uint64_t TenantOf(const std::string& cache_salt);
  std::unique_ptr<Choice> MakeChoice(const ActiveRequest& request, std::uint64_t number) const;

  void ExpireDeadlines();
  void Admit();
  // Starts the stem of a request, or its next choice.
  void StartFromPrompt(ActiveRequest& request);
  // Starts the next choice of a request whose stem is computed.
  void StartFromStem(ActiveRequest& request);
  // One choice less to start: after the last, the request waits no more.
  void ChoiceStarted(ActiveRequest& request);
  void RunStep(StepTrace* trace);
  // Hands a share's rows to its choice, or keeps them for the choices of a stem.
  void PrepareDraws(std::span<const StepShare> shares);
  void TakeRows(const StepShare& share);
  // Once all of a prompt is scored.
  void TellScores(BatchSequence& sequence);
  void Give(ActiveRequest& request, Choice& choice, std::uint64_t& last_token_us,
            std::span<const float> row);
  void Account(std::span<const StepShare> shares, std::uint64_t start_us);
  void FillTrace(StepTrace& trace) const;

  void TellFinished(ActiveRequest& request, std::uint32_t choice, FinishReason reason,
                    std::string_view rest);
  // Ends the unfinished choices for this reason, or the whole request with an Error, tells the
  // listener, and leaves the rest to Sweep.
  void EndEarly(ActiveRequest& request, FinishReason reason);
  void Fail(ActiveRequest& request, base::Error error);
  void MarkEnded(ActiveRequest& request);
  // Gives everything of ended requests back.
  void Sweep();
  void TellObserver() {
    if (observer_ != nullptr) observer_->OnTold();
  }

  const model::Model& model_;
  const tokenizer::Vocabulary& vocabulary_;
  base::ThreadTeam& team_;
  const SchedulerOptions options_;
  const Clock& clock_;
  const std::unique_ptr<kvcache::SequenceManager> cache_;
  const model::ModelShape shape_;   // Its context: what a text in this cache may have.
  const base::TokenMask drawable_;  // [vocab]: the vocabulary's default
  WaitingRoom waiting_;
  FairQueue queue_;  // Of requests with choices that can be started now.
  std::map<RequestId, ActiveRequest> requests_;
  std::set<std::pair<std::uint64_t, RequestId>> deadlines_;
  Batch batch_;                    // After cache_ and requests_, which its sequences point to.
  std::vector<RequestId> ending_;  // Cancelled during a step, or ended, until Sweep.
  bool in_step_ = false;
  std::uint64_t now_us_ = 0;  // Of the current step.
  Metrics counts_;            // Since the start.
  StepNumbers last_step_;
  StepObserver* observer_ = nullptr;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_SCHEDULER_H_
