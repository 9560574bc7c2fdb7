#include "engine/last_logits.h"

#include <algorithm>

#include "engine/sequence_pool.h"

namespace kvasir::engine {

base::Result<std::vector<float>> LastLogits(const model::Model& model,
                                            std::span<const base::TokenId> tokens,
                                            const GeneratorOptions& options,
                                            base::ThreadTeam& team) {
  const model::ModelShape& shape = model.shape();
  if (tokens.empty() || tokens.size() > shape.context) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "the text has {} tokens, but the model's context holds 1 to {}",
                           tokens.size(), shape.context);
  }
  KV_TRY(const auto pool, MakeSequencePool(shape, options, /*sequences=*/1));
  kvcache::CachedSequence sequence(*pool);
  model::Scratch scratch;
  std::vector<float> logits(shape.vocab);
  const std::uint64_t chunk = options.prefill_chunk == 0
                                  ? options.step_tokens
                                  : std::min(options.prefill_chunk, options.step_tokens);
  for (std::size_t begin = 0; begin < tokens.size();) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk, tokens.size() - begin));
    const bool last = begin + count == tokens.size();
    const model::BatchItem item = {&sequence, tokens.subspan(begin, count), last ? 1u : 0u};
    KV_TRY(model.Forward({&item, 1}, scratch, team,
                         last ? std::span<float>(logits) : std::span<float>()));
    begin += count;
  }
  return logits;
}

}  // namespace kvasir::engine
