// Session: one run of a Generator, step by step.
#ifndef KVASIR_ENGINE_SESSION_H_
#define KVASIR_ENGINE_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_mask.h"
#include "engine/choice.h"
#include "engine/generator.h"
#include "engine/sequence_lease.h"
#include "kvcache/sequence_manager.h"

namespace kvasir::engine {

// Requests wait in order; a batch of sequences runs; each sequence belongs to one choice, or is a
// stem: the text that all choices of a request share, computed for all of them. A sequence starts
// from the longest prefix in the cache; while another computes the block it needs next, it waits.
// Where the budget is used up, stems give their blocks back, then the latest sequences, which wait
// to be resumed; so the first one always goes on. Single-threaded.
class Session {
 public:
  // Requires checked requests. Borrows everything.
  Session(Generator& generator, std::span<const GenerateRequest> requests,
          const Observer& observer);

  base::Result<GenerateReport> Run();

 private:
  struct Running {
    std::size_t request = 0;
    std::unique_ptr<Choice> choice;  // Of a stem: the first one, asked but never given logits.
    SequenceLease sequence;
    bool stem = false;
    bool fresh = false;             // Never computed yet: what it finds cached counts as usage.
    std::vector<float> rows;        // Of a stem: the logits its choices begin with. [rows][vocab]
    std::uint64_t next_choice = 0;  // Of a stem that is computed: the next choice to start.
    bool scores_prompt = false;     // Of one sequence a request, until all its prompt is scored.
    std::vector<GeneratedToken> prompt = {};  // Prompt tokens 1, 2, … scored so far.
    std::size_t prompt_kept = 0;              // Of these, told to the cache.
  };
  // What a step does with one sequence.
  struct Share {
    Running* running;
    std::size_t begin, end;  // Positions computed.
    std::size_t rows;        // Of these, the last ones whose logits are wanted.
    bool complete;           // Whether a token is decided at its end.
    bool prefill;            // Whether the choice has no token yet.
  };

  // Fills the batch: choices of computed stems first, then waiting requests.
  base::Result<void> Admit();
  // Whether the budget holds a text of so many tokens, besides what is live.
  bool HasRoomFor(std::size_t tokens) const;
  // Resumes the sequences that gave way, earliest first. False if one has still to wait.
  base::Result<bool> ResumeWaiting();
  base::Result<void> StartFromStem(Running& stem);
  void StartRequest();
  std::unique_ptr<Choice> MakeChoice(std::size_t request, std::uint64_t number) const;

  std::vector<Share> PlanStep();
  // Lets a sequence without blocks begin from the cache. False if it should wait: another of this
  // step, whose next block is among `claimed`, computes what it needs.
  bool StartFromCache(Running& running, const std::vector<base::Hash128>& claimed);
  // Takes what the cache knows of the prompt's log-probabilities, and gives up the positions whose
  // logits are needed for the rest.
  void ScoreFromCache(Running& running, std::size_t found);
  // Takes the row after `position`, which scores the prompt token that follows.
  base::Result<void> ScorePrompt(Running& running, std::size_t position,
                                 std::span<const float> row);
  // Leaves what is scored with the blocks that hold it, and the result once all is.
  void KeepPromptScores(Running& running);
  // Makes room for every share; those of sequences that give way are dropped. An Error if even one
  // sequence alone finds no memory.
  base::Result<void> ReserveShares(std::vector<Share>& shares);
  // Takes the blocks of a stem, or of the latest running sequence after the first; its share too.
  // False if there is none.
  bool GiveWay(std::vector<Share>& shares);
  base::Result<void> Step();
  // Hands a share's rows to its choice, or keeps them for the choices of a stem.
  base::Result<void> TakeRows(const Share& share, std::span<const float> rows);
  base::Result<void> Give(const Running& running, Choice& choice, std::span<const float> row);
  void Account(std::span<const Share> shares, double elapsed_ms);
  std::vector<SequenceTrace> Tables() const;
  void RemoveFinished();
  void StoreResult(std::size_t request, Choice& choice);
  base::Error InRequest(std::size_t request, base::Error error) const;

  Generator& generator_;
  kvcache::SequenceManager& cache_;
  std::span<const GenerateRequest> requests_;
  const Observer& observer_;
  const std::size_t vocab_;
  std::vector<base::TokenMask> drawable_;  // [requests]: what may be drawn without a constraint
  std::vector<std::unique_ptr<Running>> running_;
  std::deque<std::unique_ptr<Running>> stems_;    // computed, with choices left to start
  std::deque<std::unique_ptr<Running>> waiting_;  // preempted, earliest first
  std::size_t next_request_ = 0;
  std::uint64_t next_choice_ = 0;  // Of next_request_, where its choices share no stem.
  std::uint64_t settled_ = 0;      // tokens, in the current step
  GenerateReport report_;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_SESSION_H_
