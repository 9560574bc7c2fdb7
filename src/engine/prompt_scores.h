// PromptScores: log-probabilities of a prompt's own tokens, computed or found in the cache.
#ifndef KVASIR_ENGINE_PROMPT_SCORES_H_
#define KVASIR_ENGINE_PROMPT_SCORES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "kvcache/sequence_manager.h"

namespace kvasir::engine {

// Scores tokens 1, 2, … of one prompt in order, while its sequence is computed, and leaves them
// with the cache. Survives the sequence's giving way. Single-threaded.
class PromptScores {
 public:
  // Rows of logits that a step should hold at most to score a prompt: they are [vocab] numbers
  // each.
  static constexpr std::size_t kMostRows = 64;

  // The request, which must outlive it, has a prompt of at least 2 tokens.
  PromptScores(const GenerateRequest& request, std::size_t vocab)
      : request_(request), vocab_(vocab) {}

  // Rows of positions next_row(), … are needed still.
  std::size_t next_row() const { return tokens_.size(); }

  // Takes what the cache knows of this running sequence, of which `found` positions were found; and
  // gives up the positions whose logits are needed for the rest.
  void TakeFromCache(kvcache::SequenceManager& cache, kvcache::SequenceId id, std::size_t found);
  // The row [vocab] after a position of the prompt but its last; one before next_row() is ignored.
  // kNumeric naming the position if a logit is not finite.
  base::Result<void> Take(std::size_t position, std::span<const float> row);
  // Leaves what is scored with the cached positions. True once the whole prompt is scored and left.
  bool LeaveWith(kvcache::SequenceManager& cache, kvcache::SequenceId id);

  std::span<const GeneratedToken> tokens() const { return tokens_; }

 private:
  // To the alternatives asked for; while it is to be left with the cache, it has more.
  void Trim(GeneratedToken& token) const;

  const GenerateRequest& request_;
  const std::size_t vocab_;
  std::vector<GeneratedToken> tokens_;  // Of the prompt, from its second on.
  std::size_t kept_ = 0;                // Of these, told to the cache.
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_PROMPT_SCORES_H_
