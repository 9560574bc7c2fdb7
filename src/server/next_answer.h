// /kvasir/next: what may come after a text, before and after the settings have had their say.
#ifndef KVASIR_SERVER_NEXT_ANSWER_H_
#define KVASIR_SERVER_NEXT_ANSWER_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "sampling/log_probs.h"
#include "sampling/sampling_options.h"
#include "server/answer.h"
#include "server/completion_call.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::server {

inline constexpr std::uint64_t kMaxNextTokens = 1000;

struct NextCall {
  PromptInput prompt;
  sampling::SamplingOptions sampling = {};
  std::uint64_t top = 20;
  std::string cache_salt = {};
};
// prompt, temperature, top_p, top_k, min_p, logit_bias, top, cache_salt and model, which need not
// be given. ApiError 400 naming the parameter.
ApiResult<NextCall> ReadNextCall(const JsonValue& body);

// A token's probability: the model's own, and what it is drawn with.
struct NextToken {
  sampling::TokenLogProb model;
  double drawn = 0;  // 0: never.
};

struct NextTable {
  std::vector<NextToken> tokens;  // The `top` most probable to the model, descending.
  std::size_t candidates = 0;     // Tokens that may be drawn.
  double shown = 0;               // Probability of `tokens` together, the model's own.
};

// From raw logits [vocab]; drawable: what may be drawn at all (null: everything). Greedy settings
// leave one candidate. kNumeric for a logit that is not finite, kUsage for options that the
// vocabulary does not fit.
base::Result<NextTable> MakeNextTable(std::span<const float> logits,
                                      const sampling::SamplingOptions& options, std::size_t top,
                                      const base::TokenMask* drawable);

class NextAnswer final : public Answer {
 public:
  // Borrows vocabulary and drawable.
  NextAnswer(NextCall call, std::string model, const tokenizer::Vocabulary& vocabulary,
             const base::TokenMask& drawable);

  bool wants_logits() const override { return true; }
  bool complete() const override { return !row_.empty() || ended(); }
  ApiResult<std::string> Body() override;

 private:
  void OnNews(std::size_t request, News& news) override;

  const NextCall call_;
  const std::string model_;
  const tokenizer::Vocabulary& vocabulary_;
  const base::TokenMask& drawable_;
  std::vector<float> row_;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_NEXT_ANSWER_H_
