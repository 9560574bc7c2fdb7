// Beam search: the most probable texts of a constraint, as far as a beam sees.
#ifndef KVASIR_ENGINE_BEAM_SEARCH_H_
#define KVASIR_ENGINE_BEAM_SEARCH_H_

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "engine/generator_options.h"
#include "engine/request.h"
#include "model/model.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::engine {

inline constexpr std::uint64_t kMaxBeams = 256;

// Continues the prompt under the constraint, one token a step for each of at most `width` texts;
// of all ways to lengthen them by one token keeps the `width` most probable to the model itself
// (of equals that of the better text, then the lower token id). A text whose constraint is complete
// stays among them. Ends when all are complete. A constraint that the search follows into a place
// from which nothing goes on loses that text, so it should have no dead ends.
//
// Of the request only prompt, constraint (not null, of bounded length) and max_tokens count: a text
// that reaches max_tokens ends with kLength. Returns the texts, most probable first, as choices
// 0, 1, …: their number is at least 1 and at most width. Nothing is drawn; bits do not depend on
// the options. Errors: kUsage for a width outside 1 … kMaxBeams, a prompt or length beyond the
// context; kNumeric naming the position of a logit that is not finite; kExhausted.
// Thread-compatible.
base::Result<std::vector<ChoiceResult>> BeamSearch(const model::Model& model,
                                                   const tokenizer::Vocabulary& vocabulary,
                                                   const GenerateRequest& request,
                                                   std::uint64_t width,
                                                   const GeneratorOptions& options,
                                                   base::ThreadTeam& team);

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_BEAM_SEARCH_H_
