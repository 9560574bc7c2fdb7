#include "server/next_answer.h"

#include <algorithm>
#include <utility>

#include "base/token_mask.h"
#include "kernels/softmax.h"
#include "sampling/logit_filters.h"
#include "server/answer_json.h"
#include "server/json_writer.h"

namespace kvasir::server {
namespace {

// The probability that each token is drawn with, by id; what cannot be drawn is 0.
base::Result<std::vector<double>> DrawProbabilities(std::span<const float> logits,
                                                    const sampling::SamplingOptions& options,
                                                    const base::TokenMask* drawable) {
  std::vector<float> scores(logits.begin(), logits.end());
  sampling::ApplyLogitBias(options, scores);
  sampling::ApplyMasks(options, drawable, scores);
  std::vector<double> drawn(scores.size(), 0.0);
  const float max = kernels::MaxValue(scores.data(), scores.size());
  if (options.greedy()) {
    drawn[static_cast<std::size_t>(std::find(scores.begin(), scores.end(), max) - scores.begin())] =
        1;
    return drawn;
  }
  kernels::SoftmaxWeights(scores.data(), scores.size(), max, options.temperature, scores.data());
  if (sampling::CandidateFilter::Needed(options)) {
    sampling::CandidateFilter filter;
    filter.Apply(scores, options);
    std::vector<float> kept(scores.size(), 0.0f);
    for (std::size_t i = 0; i < filter.ids().size(); ++i)
      kept[filter.ids()[i]] = filter.weights()[i];
    scores = std::move(kept);
  }
  double total = 0;
  for (const float weight : scores) total += static_cast<double>(weight);
  for (std::size_t i = 0; i < scores.size(); ++i) drawn[i] = static_cast<double>(scores[i]) / total;
  return drawn;
}

}  // namespace

ApiResult<NextCall> ReadNextCall(const JsonValue& body) {
  const FieldReader fields(body);
  KV_TRY(fields.Only({"prompt", "model", "temperature", "top_p", "top_k", "min_p", "logit_bias",
                      "top", "cache_salt"}));
  NextCall call;
  KV_TRY(auto prompts, ReadPrompts(fields));
  if (prompts.size() != 1) {
    return ApiError(400, "'prompt' holds several prompts: one is allowed", "prompt",
                    "invalid_value");
  }
  call.prompt = std::move(prompts[0]);
  KV_TRY(call.sampling, ReadSampling(fields));
  KV_TRY(const auto top, fields.Whole("top", {1, kMaxNextTokens}));
  call.top = top.value_or(call.top);
  KV_TRY(call.cache_salt, ReadSalt(fields));
  KV_TRY(fields.Text("model"));
  return call;
}

base::Result<NextTable> MakeNextTable(std::span<const float> logits,
                                      const sampling::SamplingOptions& options, std::size_t top,
                                      const base::TokenMask* drawable) {
  KV_TRY(sampling::Validate(options, logits.size()));
  NextTable table;
  KV_TRY(const auto best, sampling::TopLogProbs(logits, std::min(top, logits.size())));
  KV_TRY(const auto drawn, DrawProbabilities(logits, options, drawable));
  for (const sampling::TokenLogProb& token : best) {
    table.tokens.push_back({token, drawn[token.id]});
    table.shown += token.prob;
  }
  table.candidates = static_cast<std::size_t>(
      std::count_if(drawn.begin(), drawn.end(), [](double p) { return p > 0; }));
  return table;
}

NextAnswer::NextAnswer(NextCall call, std::string model, const tokenizer::Vocabulary& vocabulary,
                       const base::TokenMask& drawable)
    : Answer(1),
      call_(std::move(call)),
      model_(std::move(model)),
      vocabulary_(vocabulary),
      drawable_(drawable) {}

void NextAnswer::OnNews(std::size_t /*request*/, News& news) {
  if (auto* logits = std::get_if<LogitsNews>(&news)) row_ = std::move(logits->row);
}

ApiResult<std::string> NextAnswer::Body() {
  // A prompt that fills the context has no next token.
  JsonWriter json;
  json.BeginObject().Member("object", "next_tokens").Member("model", model_);
  NextTable table;
  if (!row_.empty()) {
    KV_TRY(table,
           MakeNextTable(row_, call_.sampling, static_cast<std::size_t>(call_.top), &drawable_));
  }
  json.Member("candidates", table.candidates).Member("shown", table.shown);
  json.Key("tokens").BeginArray();
  for (const NextToken& token : table.tokens) {
    json.BeginObject().Member("token", ShownToken(vocabulary_, token.model.id));
    json.Member("id", std::uint64_t{token.model.id}).Member("prob", token.model.prob);
    json.Member("logprob", token.model.logprob).Member("drawn", token.drawn).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace kvasir::server
