// How fast the engine writes many texts at once: with queue, draws and listeners, without HTTP.
#ifndef KVASIR_EVAL_ENGINE_SPEED_H_
#define KVASIR_EVAL_ENGINE_SPEED_H_

#include <cstdint>

#include "base/result.h"
#include "base/thread_team.h"
#include "eval/generation_speed.h"
#include "model/model.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::eval {

// A vocabulary for random weights: special and byte tokens, then one ideograph or two each.
// Requires 300 to 10^8 tokens.
base::Result<tokenizer::Vocabulary> MakePlainVocabulary(std::uint64_t tokens);

struct EngineSpeed {
  double tokens_per_s = 0;    // From the first request to the last token of the last.
  double first_token_ms = 0;  // Mean, from the first request.
  double ms_per_step = 0;     // Mean.
};
// `streams` requests at once, with prompts of 16 tokens that differ from the first on, each written
// options.tokens further at temperature 1, through an engine::Engine. Checked: two of the answers
// are those that they have alone. Medians over the repetitions. kUsage if prompt and answer do not
// fit the context or the vocabulary is not the model's size.
base::Result<EngineSpeed> MeasureEngine(const model::Model& model,
                                        const tokenizer::Vocabulary& vocabulary,
                                        std::uint64_t streams, const SpeedOptions& options,
                                        base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_ENGINE_SPEED_H_
