// How well a model predicts a text: mean negative log-likelihood, perplexity, bits a character.
#ifndef KVASIR_EVAL_PERPLEXITY_H_
#define KVASIR_EVAL_PERPLEXITY_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "eval/sequence_logits.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace kvasir::eval {

struct PerplexityOptions {
  // Tokens between the starts of two windows; 0: the context, so that windows do not overlap. A
  // smaller stride gives predictions more history and costs context / stride times as much.
  std::uint64_t stride = 0;
  ArrangementOptions arrangement = {};
};

struct Perplexity {
  std::uint64_t tokens = 0;      // Predicted: all but the first.
  std::uint64_t characters = 0;  // Predicted: all but those the first token completes.
  double nll = 0;                // Mean over tokens, nats; the sum is taken in ascending order.
  double perplexity = 0;         // e^nll
  double bits_per_char = 0;      // nll · tokens / ln 2 / characters
  std::vector<base::TokenId> text_tokens;  // [tokens + 1]
  std::vector<double> token_nll;           // [tokens]: of text_tokens[i + 1].
};

// The text is cut into windows of C = context input tokens; every token but the very first is
// predicted once, from the start of the first window that reaches it. Never holds more than
// LogitRowsPerStep rows of logits. Errors: kBadData for a text that is not UTF-8 (naming offset and
// byte) or has fewer than 2 tokens; kUsage for a stride beyond the context, or a block size that is
// not allowed; kNumeric naming the position of a logit that is not finite. Thread-compatible.
base::Result<Perplexity> EvaluateText(const model::Model& model,
                                      const tokenizer::Tokenizer& tokenizer, std::string_view text,
                                      const PerplexityOptions& options, base::ThreadTeam& team);

// The same of tokens: token_nll[i] for tokens[i + 1].
base::Result<std::vector<double>> TokenLosses(const model::Model& model,
                                              std::span<const base::TokenId> tokens,
                                              const PerplexityOptions& options,
                                              base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_PERPLEXITY_H_
