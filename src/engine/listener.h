// Listener: who is told what becomes of a request, as it happens.
#ifndef KVASIR_ENGINE_LISTENER_H_
#define KVASIR_ENGINE_LISTENER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "engine/request.h"

namespace kvasir::engine {

// One more token of a choice.
struct TokenStep {
  std::uint32_t choice = 0;  // choice_index
  const GeneratedToken& token;
  std::string_view text;               // What became certain with this token; may be empty.
  std::optional<FinishReason> finish;  // Of the choice's last token.
};

// Called on the thread that steps the scheduler, in this order for each choice: any number of
// OnToken, one OnFinish; those of different choices interleave in an order that is no promise.
// Then, once for the request, OnDone; after it nothing comes, and the listener may go. A request
// that ends with an Error has no OnFinish for the choices it cuts short. Calls must not block; they
// may Submit and Cancel.
class Listener {
 public:
  virtual ~Listener() = default;

  virtual void OnToken(const TokenStep& step) = 0;
  // With prompt_logprobs, once: of each prompt token after the first, given those before it. Not
  // called for a prompt of one token, or where nothing was computed, since no token could follow.
  virtual void OnPromptScored(std::span<const GeneratedToken> /*tokens*/) {}
  // rest: text held back until now. Empty but for kCancelled and kDeadline, since else the last
  // token's text holds it.
  virtual void OnFinish(std::uint32_t /*choice*/, FinishReason /*reason*/,
                        std::string_view /*rest*/) {}
  // What the request cost, or why it failed: kNumeric naming the position of a logit that is not
  // finite, kUsage if nothing may be drawn, kExhausted when memory runs out.
  virtual void OnDone(const base::Result<Usage>& usage) = 0;

  // The raw logits [vocab] after `position`, before a token is taken from them: for verification.
  virtual void OnLogits(std::uint32_t /*choice*/, std::size_t /*position*/,
                        std::span<const float> /*row*/) {}
};

// Told, on the thread that steps the scheduler, when listeners have been told something: once for
// all of a step's tokens, so that whoever passes them on to another thread wakes it once. Must not
// block.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void OnTold() = 0;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_LISTENER_H_
