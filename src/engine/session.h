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
#include "kvcache/sequence.h"

namespace kvasir::engine {

// Requests wait in order; a batch of sequences runs; each sequence belongs to one choice, or is a
// stem: the text that all choices of a request share, computed for all of them. Single-threaded.
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
    kvcache::CachedSequence sequence;
    bool stem = false;
    std::vector<float> rows;        // Of a stem: the logits its choices begin with. [rows][vocab]
    std::uint64_t next_choice = 0;  // Of a stem that is computed: the next choice to start.
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
  base::Result<void> StartFromStem(Running& stem);
  void StartRequest();
  std::unique_ptr<Choice> MakeChoice(std::size_t request, std::uint64_t number) const;

  std::vector<Share> PlanStep();
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
  std::span<const GenerateRequest> requests_;
  const Observer& observer_;
  const std::size_t vocab_;
  std::vector<base::TokenMask> drawable_;  // [requests]: what may be drawn without a constraint
  std::vector<std::unique_ptr<Running>> running_;
  std::deque<std::unique_ptr<Running>> stems_;  // computed, with choices left to start
  std::size_t next_request_ = 0;
  std::uint64_t next_choice_ = 0;  // Of next_request_, where its choices share no stem.
  std::uint64_t settled_ = 0;      // tokens, in the current step
  GenerateReport report_;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_SESSION_H_
