#include "eval/sequence_logits.h"

#include <algorithm>
#include <cmath>

#include "eval/model_cache.h"
#include "kernels/softmax.h"

namespace kvasir::eval {

using base::ErrorCode;
using base::MakeError;

std::size_t LogitRowsPerStep(const model::ModelShape& shape) {
  constexpr std::size_t kFloats = std::size_t{4} << 20;
  return std::max<std::size_t>(1, kFloats / shape.vocab);
}

base::Result<void> CheckFinite(std::span<const float> row, std::uint64_t position) {
  if (kernels::AllFinite(row.data(), row.size())) return base::Success();
  const auto bad = std::find_if(row.begin(), row.end(), [](float x) { return !std::isfinite(x); });
  return MakeError(ErrorCode::kNumeric,
                   "the logit of token {} at position {} is {}: the model's numbers overflow",
                   bad - row.begin(), position, *bad);
}

base::Result<void> CheckLength(std::span<const base::TokenId> tokens, std::uint64_t context) {
  if (!tokens.empty() && tokens.size() <= context) return base::Success();
  return MakeError(ErrorCode::kUsage, "the text has {} tokens; allowed are 1 to {}, the context",
                   tokens.size(), context);
}

namespace {

// Runs all tokens; place(begin, count) is where the logits of a step's rows go.
template <typename Place>
base::Result<void> RunSteps(const model::Model& model, std::span<const base::TokenId> tokens,
                            const ArrangementOptions& options, base::ThreadTeam& team,
                            model::StepTap* tap, const Place& place) {
  const model::ModelShape& shape = model.shape();
  KV_TRY(const auto pool,
         MakeModelCache(shape, {.block_tokens = options.block_tokens, .policy = options.policy}));
  kvcache::CachedSequence sequence(*pool);
  model::Scratch scratch;
  scratch.set_tap(tap);
  const std::size_t chunk = options.prefill_chunk == 0
                                ? LogitRowsPerStep(shape)
                                : static_cast<std::size_t>(options.prefill_chunk);
  for (std::size_t begin = 0; begin < tokens.size();) {
    const std::size_t count = std::min(chunk, tokens.size() - begin);
    if (!options.kv_cache) sequence.Reset();
    const std::size_t first = options.kv_cache ? begin : 0;
    const model::BatchItem item = {&sequence, tokens.subspan(first, begin + count - first), count};
    const std::span<float> rows = place(begin, count);
    KV_TRY(model.Forward({&item, 1}, scratch, team, rows));
    for (std::size_t i = 0; i < count; ++i) {
      KV_TRY(CheckFinite(rows.subspan(i * shape.vocab, shape.vocab), begin + i));
    }
    begin += count;
  }
  return base::Success();
}

}  // namespace

base::Result<std::vector<float>> SequenceLogits(const model::Model& model,
                                                std::span<const base::TokenId> tokens,
                                                const ArrangementOptions& options,
                                                base::ThreadTeam& team) {
  const std::uint64_t vocab = model.shape().vocab;
  KV_TRY(CheckLength(tokens, model.shape().context));
  std::vector<float> logits(tokens.size() * vocab);
  const auto place = [&](std::size_t begin, std::size_t count) {
    return std::span(logits).subspan(begin * vocab, count * vocab);
  };
  KV_TRY(RunSteps(model, tokens, options, team, /*tap=*/nullptr, place));
  return logits;
}

base::Result<void> TapSequence(const model::Model& model, std::span<const base::TokenId> tokens,
                               const ArrangementOptions& options, base::ThreadTeam& team,
                               model::StepTap& tap) {
  KV_TRY(CheckLength(tokens, model.shape().context));
  std::vector<float> logits;
  const auto place = [&](std::size_t, std::size_t count) {
    logits.resize(count * model.shape().vocab);
    return std::span(logits);
  };
  return RunSteps(model, tokens, options, team, &tap, place);
}

}  // namespace kvasir::eval
