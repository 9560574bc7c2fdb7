// The logits that follow a text.
#ifndef KVASIR_ENGINE_LAST_LOGITS_H_
#define KVASIR_ENGINE_LAST_LOGITS_H_

#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "engine/generator_options.h"
#include "model/model.h"

namespace kvasir::engine {

// Logits [vocab] after the last token, raw: bit for bit those that Generator draws from. Of the
// options only block_tokens, prefill_chunk and step_tokens matter. kUsage for no token, more than
// the context, an id outside the vocabulary, or options that are not allowed. Thread-compatible.
base::Result<std::vector<float>> LastLogits(const model::Model& model,
                                            std::span<const base::TokenId> tokens,
                                            const GeneratorOptions& options,
                                            base::ThreadTeam& team);

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_LAST_LOGITS_H_
