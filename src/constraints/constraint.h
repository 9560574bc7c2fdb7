// Matcher: what every constraint is to the engine. Token by token, it says what may come next.
#ifndef KVASIR_CONSTRAINTS_CONSTRAINT_H_
#define KVASIR_CONSTRAINTS_CONSTRAINT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "base/token_mask.h"

namespace kvasir::constraints {

// The state of one text under a constraint that was compiled for one vocabulary. Only generated
// tokens are given to it, never the prompt. Single-threaded; what was compiled is shared by clones.
// Invariants:
//   1. Accept(t) returns true exactly if Mask sets t.
//   2. Rollback(n) leaves the state that accepting all but the last n tokens gives.
//   3. IsComplete() implies MayEnd(), and then Mask sets nothing.
//   4. If no token can follow and the text may not end, compiling would have failed: Mask sets at
//      least one token unless IsComplete() or Status() is an error.
class Matcher {
 public:
  virtual ~Matcher() = default;

  // Takes the token if it may come next; else changes nothing and returns false.
  virtual bool Accept(base::TokenId token) = 0;

  // Sets exactly the tokens that may come next. Requires the size of the vocabulary. End tokens are
  // not set: the engine adds its own where MayEnd().
  virtual void Mask(base::TokenMask& mask) const = 0;

  // Takes back the last n accepted tokens. Requires n <= accepted_tokens().
  virtual void Rollback(std::size_t n) = 0;

  // The text may end here.
  virtual bool MayEnd() const = 0;

  // The text may end here and nothing may follow: generation is over.
  virtual bool IsComplete() const = 0;

  // The tokens with which every continuation begins, possibly none: the engine appends them without
  // drawing, by Accept.
  virtual std::vector<base::TokenId> ForcedTokens() const = 0;

  // Tokens accepted and not rolled back.
  virtual std::size_t accepted_tokens() const = 0;

  // An error once following this text has met a limit; from then on Mask sets nothing. Asked for
  // after Mask.
  virtual base::Result<void> Status() const { return base::Success(); }

  // How many more tokens there can be at most, where the constraint bounds it.
  virtual std::optional<std::size_t> MaxRemainingTokens() const = 0;

  // An independent matcher in the same state.
  virtual std::unique_ptr<Matcher> Clone() const = 0;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_CONSTRAINT_H_
