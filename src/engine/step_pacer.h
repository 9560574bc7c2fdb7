// StepPacer: how many tokens of prompts a step may read while texts are being written.
#ifndef KVASIR_ENGINE_STEP_PACER_H_
#define KVASIR_ENGINE_STEP_PACER_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvasir::engine {

struct StepPace {
  // Most tokens of a step in which some text is being written. 0: as any other step.
  std::uint64_t most_tokens = 0;
  // Such a step may take so many times what it would without prompts, as far as that can be told
  // from the steps before: what a reader sees as the longest pause. 0: any time. Else at least 1.
  double most_time = 0;
};

// What a step takes without prompts is remembered for each power of two of texts, and what tokens
// of prompts add to it, both as moving means. A few tokens may come almost free and many not, so
// their number at most doubles from what was measured. So the same model on another machine, or
// another model on this one, needs no other setting. Prompts always get some tokens.
// Single-threaded.
class StepPacer {
 public:
  StepPacer(const StepPace& pace, std::uint64_t step_tokens);

  // Most tokens of a step of so many texts being written, these included. At least `texts`.
  // Requires texts >= 1.
  std::size_t Budget(std::size_t texts) const;

  // A step has taken so long with one token or more of each of these texts, and so many of prompts.
  void Took(std::size_t texts, std::size_t prompt_tokens, std::uint64_t microseconds);

 private:
  // Of texts alone; 0: not known.
  double PlainTime(std::size_t texts) const;

  const double most_time_;
  const std::size_t most_tokens_;
  std::array<double, 33> plain_us_ = {};  // By the number's bits.
  // Of steps with prompts; 0: not known.
  double added_us_ = 0;
  double added_tokens_ = 0;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_STEP_PACER_H_
