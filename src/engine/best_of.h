// Of many continuations, those that the model finds most probable.
#ifndef KVASIR_ENGINE_BEST_OF_H_
#define KVASIR_ENGINE_BEST_OF_H_

#include <cstdint>
#include <vector>

#include "engine/request.h"

namespace kvasir::engine {

// Mean log-probability of a choice's tokens, the model's own, in nats; stop strings and end tokens
// count too. 0 without tokens. The mean, since a sum would favour short texts. Summed ascending.
double MeanLogProb(const ChoiceResult& choice);

// Of each best_of choices in turn the one of the highest mean; of equals the first. Requires
// best_of >= 1.
std::vector<ChoiceResult> BestOf(std::vector<ChoiceResult> choices, std::uint64_t best_of);

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_BEST_OF_H_
