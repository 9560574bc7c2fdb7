// Batch: the sequences that are computed together, step by step.
#ifndef KVASIR_ENGINE_BATCH_H_
#define KVASIR_ENGINE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "engine/active_request.h"
#include "engine/choice.h"
#include "engine/generator_options.h"
#include "engine/prompt_scores.h"
#include "engine/sequence_lease.h"
#include "engine/step_pacer.h"
#include "kvcache/prefix_restore.h"
#include "kvcache/sequence_manager.h"
#include "model/model.h"

namespace kvasir::engine {

// One text being computed: that of a choice, or a stem, which is the text that all choices of a
// request begin with, computed for all of them.
struct BatchSequence {
  ActiveRequest* owner;
  std::unique_ptr<Choice> choice;  // Of a stem: the first one, asked but never given logits.
  SequenceLease lease;
  bool stem = false;
  std::size_t start = 0;                    // Of what it computes, in the choice's whole text.
  std::optional<PromptScores> scores = {};  // Until all the prompt is scored.
  bool fresh = true;      // Never computed yet: what it finds cached counts as usage.
  bool decoding = false;  // It has had a token since it last was without blocks.
  std::uint64_t last_token_us = 0;
  std::vector<float> rows = {};  // Of a computed stem: the logits its choices begin with. [][vocab]
  bool asked_store = false;
  std::unique_ptr<kvcache::PrefixRestore> restore = nullptr;  // While the store is asked.

  kvcache::SequenceId id() const { return lease.id(); }
};

// What a step does with one sequence.
struct StepShare {
  BatchSequence* sequence;
  std::size_t begin, end;  // Positions computed.
  std::size_t rows;        // Of these, the last ones whose logits are wanted.
  bool complete;           // Whether a token is decided at its end.
  bool prefill;            // Whether the choice has no token yet.
  bool decoding;           // Whether the text was being continued before.
  std::size_t cached = 0;  // Positions found in the cache by a sequence never computed before.
  std::span<const float> logits = {};     // [rows][vocab]; valid until the next step.
  std::optional<base::Error> error = {};  // Instead: nothing was computed.
};

// A sequence starts from the longest prefix in the cache, or from a running sequence that begins
// alike; while another computes what it needs next, it waits. Where the budget is used up, computed
// stems give their blocks back, then the latest sequences, which wait to be resumed; so the first
// one always goes on. Sequences stand in the order they were added. Borrows everything.
// Single-threaded.
class Batch {
 public:
  // pace: of steps in which some sequence is decoding.
  Batch(const model::Model& model, base::ThreadTeam& team, kvcache::SequenceManager& cache,
        const GeneratorOptions& options, const StepPace& pace);

  bool empty() const { return running_.empty(); }
  std::size_t running() const { return running_.size(); }
  std::size_t preempted() const { return waiting_.size(); }
  std::uint64_t preemptions() const { return preemptions_; }
  // Every running sequence has a token in each step, so there are at most step_tokens of them.
  bool HasSlot() const { return running_.size() < slots_; }
  // Whether the budget holds a text of so many tokens, besides what is live.
  bool HasRoomFor(std::size_t tokens) const;

  void Add(std::unique_ptr<BatchSequence> sequence);
  // Resumes the sequences that gave way, earliest first. False if one has still to wait.
  bool ResumeWaiting();
  // A sequence for a choice of a computed stem: its twin, or an empty one if the stem gave its
  // blocks back, which are then found in the cache or computed again.
  SequenceLease ForkStem(const BatchSequence& stem);

  // Computes the next step and commits it. The caller takes the logits, then calls Settle,
  // TakeStems and DropEnded. Requires a running sequence. No share, after a short wait: all that
  // run wait for the store.
  std::vector<StepShare> Compute();
  // How long a step has taken, as the caller's clock says.
  void Took(std::span<const StepShare> shares, std::uint64_t microseconds);
  // Without a cache: forgets the texts that a token was decided of.
  void Settle(std::span<const StepShare> shares);
  // Moves computed stems aside, where they take no slot, and returns them.
  std::vector<BatchSequence*> TakeStems();

  // Drops sequences whose choice is finished.
  void DropEnded();
  void DropStem(const BatchSequence* stem);
  void Drop(const ActiveRequest& owner);  // All of this request.
  // All of a request, preempted ones too.
  std::vector<BatchSequence*> Of(const ActiveRequest& owner) const;

  // Stems first, then running ones: all that hold blocks.
  std::vector<const BatchSequence*> Sequences() const;

 private:
  std::vector<StepShare> Plan();
  // Lets a sequence without blocks begin from the cache. False if it should wait: another of this
  // step computes what it needs next.
  bool StartFromCache(BatchSequence& sequence, std::span<BatchSequence* const> computing);
  // Begins to ask the store for what the cache lacks, once a sequence. False if there is nothing to
  // wait for.
  bool AskStore(BatchSequence& sequence);
  // Whether the sequence still waits for the store.
  static bool WaitsForStore(BatchSequence& sequence);
  // Waits a little for the first one that does.
  void AwaitStore();
  // Shares the longest common beginning with another sequence that holds blocks, if it is longer
  // than `found`; returns what is shared now.
  std::size_t ShareWithTwin(BatchSequence& sequence, std::size_t found);
  // Whether one of these stands where this sequence does, and goes on to much of the same text.
  bool AnotherComputes(const BatchSequence& sequence,
                       std::span<BatchSequence* const> computing) const;
  std::size_t LengthOf(const BatchSequence& sequence) const;
  // The text before the first logits wanted: what may come from the cache.
  static std::span<const TokenId> Reusable(const BatchSequence& sequence);
  // Makes room for every share; those of sequences that give way are dropped, and one that is alone
  // computes less.
  void Reserve(std::vector<StepShare>& shares);
  // Takes the blocks of a stem, or of the latest running sequence after the first; its share too.
  // False if there is none.
  bool GiveWay(std::vector<StepShare>& shares);
  void Forward(std::vector<StepShare>& shares);
  StepShare ShareOf(BatchSequence& sequence, std::size_t tokens) const;
  // So many tokens of it; says what that decides.
  static void Resize(StepShare& share, std::size_t tokens);
  static std::span<const TokenId> Tokens(const StepShare& share);

  const model::Model& model_;
  base::ThreadTeam& team_;
  kvcache::SequenceManager& cache_;
  const GeneratorOptions options_;
  const std::size_t slots_;
  StepPacer pacer_;
  const std::size_t vocab_;
  std::vector<std::unique_ptr<BatchSequence>> running_;
  std::deque<std::unique_ptr<BatchSequence>> stems_;    // computed, with choices left to start
  std::deque<std::unique_ptr<BatchSequence>> waiting_;  // preempted, earliest first
  std::uint64_t preemptions_ = 0;
  model::Scratch scratch_;
  std::vector<float> logits_;  // [rows wanted in a step][vocab]
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_BATCH_H_
