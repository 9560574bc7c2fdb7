// A grammar compiled for one vocabulary, and the matcher that follows one text under it.
#ifndef KVASIR_CONSTRAINTS_COMPILED_CONSTRAINT_H_
#define KVASIR_CONSTRAINTS_COMPILED_CONSTRAINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "base/token_mask.h"
#include "constraints/constraint.h"
#include "constraints/recognizer.h"
#include "constraints/token_trie.h"

namespace kvasir::constraints {

// Thread-safe: one lock over the recognizer, which grows as texts are read, and over the masks,
// which are kept by state. Shared by all matchers of the constraint.
class CompiledConstraint {
 public:
  CompiledConstraint(Grammar grammar, std::shared_ptr<const TokenTrie> trie,
                     std::size_t max_bytes = kDefaultRecognizerBytes)
      : recognizer_(std::move(grammar), max_bytes),
        trie_(std::move(trie)),
        max_bytes_(max_bytes),
        nothing_(trie_->vocab_size()) {}

  StateId start() const { return recognizer_.start(); }
  std::size_t vocab_size() const { return trie_->vocab_size(); }
  // The state after a token; kDeadState if it may not come. Requires token < vocab_size().
  StateId Step(StateId state, base::TokenId token);
  StateId Step(StateId state, std::uint8_t byte);
  bool MayEnd(StateId state) const;
  bool MayContinue(StateId state) const;
  // Sets exactly the tokens whose bytes may come next. Requires the size of the vocabulary.
  void Mask(StateId state, base::TokenMask& mask);
  // The token that must come next, if it is the only one and the text may not end.
  std::optional<base::TokenId> Forced(StateId state);
  std::size_t state_count() const;
  // An error once the recognizer's limit was met: then all masks are empty.
  base::Result<void> Status() const;

 private:
  // What a part of a state (Recognizer::Parts) says of the tokens, whatever waits outside.
  struct PartMask {
    base::TokenMask within;  // They may come.
    // Tokens from these nodes on leave the part on their way: the whole state decides.
    const TokenTrie::Tree* tree = nullptr;
    std::vector<std::uint32_t> leaving;
  };
  // Where whole plain characters lead from a state.
  struct PlainStep {
    enum class Kind : std::uint8_t { kUnknown, kOne, kNone, kMixed };
    Kind kind = Kind::kUnknown;  // All to one state, none anywhere, or it matters which.
    StateId next = kDeadState;
  };

  const base::TokenMask& MaskLocked(StateId state);
  const PartMask& PartLocked(StateId part);
  // Adds the tokens from `node` on that may come after their beginning has led to `state`.
  void Walk(const TokenTrie::Tree& tree, std::uint32_t node, StateId state, base::TokenMask& mask);
  PlainStep PlainStepOf(StateId state);
  // How many plain characters may come, whichever they are.
  struct PlainRun {
    std::size_t characters = 0;
    bool all = false;   // As many as were asked for.
    bool ends = false;  // No plain character may come behind them, nor one that leaves a part.
  };
  PlainRun PlainRunOf(StateId state, std::size_t most);
  bool AllBelow(const TokenTrie::Node& node, StateId state);

  mutable std::mutex mutex_;
  Recognizer recognizer_;
  const std::shared_ptr<const TokenTrie> trie_;
  const std::size_t max_bytes_;  // Of all masks, too: beyond that they are made anew.
  const base::TokenMask nothing_;
  boost::unordered_flat_map<StateId, base::TokenMask> masks_;
  boost::unordered_flat_map<StateId, PartMask> parts_;
  std::vector<StateId> path_;           // [max_depth + 1] of a walk
  std::vector<bool> left_;              // [max_depth + 1] Whether a part may be left before.
  std::vector<PlainStep> plain_steps_;  // [states]
};

// Invariant: history_[i] is the state after i accepted tokens.
class GrammarMatcher final : public Matcher {
 public:
  explicit GrammarMatcher(std::shared_ptr<CompiledConstraint> constraint)
      : constraint_(std::move(constraint)), history_{constraint_->start()} {}

  bool Accept(base::TokenId token) override;
  void Mask(base::TokenMask& mask) const override;
  void Rollback(std::size_t n) override;
  bool MayEnd() const override { return constraint_->MayEnd(history_.back()); }
  bool IsComplete() const override {
    return MayEnd() && !constraint_->MayContinue(history_.back());
  }
  std::vector<base::TokenId> ForcedTokens() const override;
  std::size_t accepted_tokens() const override { return history_.size() - 1; }
  base::Result<void> Status() const override { return constraint_->Status(); }
  std::optional<std::size_t> MaxRemainingTokens() const override { return std::nullopt; }
  std::unique_ptr<Matcher> Clone() const override {
    return std::make_unique<GrammarMatcher>(*this);
  }

 private:
  std::shared_ptr<CompiledConstraint> constraint_;
  std::vector<StateId> history_;  // [accepted tokens + 1]
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_COMPILED_CONSTRAINT_H_
