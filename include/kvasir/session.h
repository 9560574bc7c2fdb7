// Session: a model at work, with its threads and its cache.
#ifndef KVASIR_SESSION_H_
#define KVASIR_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/model.h"
#include "kvasir/request.h"
#include "kvasir/result.h"
#include "kvasir/version.h"

namespace kvasir {

// How the work is arranged. Only `policy` can change an answer, where it says to keep less than
// everything; all others change times and bytes, never a bit.
struct CacheSettings {
  bool enabled = true;         // Off: every position is computed again at each step.
  std::string policy = {};     // What is kept, in the language of --kv; empty: everything, in f32.
  bool share_prefixes = true;  // Prompts start from what other texts have left in the cache.
  std::uint64_t block_tokens = 16;  // A multiple of 16, up to 256.
  std::uint64_t prefill_chunk = 0;  // Most prompt tokens in a step; 0: as many as fit.
  std::uint64_t max_batch = 32;     // Most texts in a step.
  std::optional<std::uint64_t> budget_bytes = {};  // Of K and V; none: enough for max_batch texts.
};

struct SessionOptions {
  std::size_t threads = 0;  // 0: the physical cores.
  CacheSettings cache = {};
};

// Rows of logits, or the last of them.
struct Logits {
  std::size_t rows = 0;
  std::size_t vocabulary = 0;
  std::vector<float> values = {};  // [rows][vocabulary]; row t predicts the token after position t.
};

struct Evaluation {
  std::uint64_t tokens = 0;  // Predicted: all but the first.
  double nll = 0;            // Mean negative log-likelihood of a token, in nats.
  double perplexity = 0;     // e^nll
  double bits_per_char = 0;
  std::vector<double> token_nll = {};  // [tokens]
};

// Called for each token; false ends the run: what there is by then is the answer. An exception
// thrown by it ends the run too and comes out of Generate.
using TokenCallback = std::function<bool(const TokenEvent&)>;

// Movable. Used by one thread at a time; sessions of one model may work on several threads at once.
// The floating-point state of the calling thread does not matter, and is left as it was.
class KVASIR_API Session {
 public:
  // kUsage for settings that are not allowed; kExhausted if the system gives no more threads.
  static Result<Session> Make(const Model& model, const SessionOptions& options = {});
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;
  ~Session();

  const Model& model() const { return model_; }

  // Continues a prompt. kUsage naming the setting that is not allowed; kBadData for a prompt that
  // is not UTF-8; kNumeric for a logit that is not finite; kExhausted.
  Result<Answer> Generate(const Request& request, const TokenCallback& callback = {});
  // Continues many in one batch: the same answers, sooner. An error names its request.
  Result<std::vector<Answer>> GenerateAll(const std::vector<Request>& requests,
                                          const TokenCallback& callback = {});
  // Of the last run.
  const Usage& usage() const;

  // Of every position. kUsage for no token, more than the context, or an id that is none.
  Result<Logits> AllLogits(const std::vector<TokenId>& tokens);
  // After the last token alone: the bits that the next token is drawn from.
  Result<Logits> LastLogits(const std::vector<TokenId>& tokens);
  // The k most probable tokens after a prompt, the most probable first.
  Result<std::vector<TokenProbability>> Next(std::string_view prompt, std::size_t k = 8);

  // How well the model predicts a text. The text is cut into windows of `context` tokens, each
  // `stride` after the one before (0: no overlap); every token but the first is predicted once.
  Result<Evaluation> Evaluate(std::string_view text, std::uint64_t stride = 0);

 private:
  struct Impl;
  Session(Model model, std::unique_ptr<Impl> impl);

  Model model_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir

#endif  // KVASIR_SESSION_H_
