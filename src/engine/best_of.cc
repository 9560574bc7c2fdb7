#include "engine/best_of.h"

#include <utility>

#include "base/check.h"

namespace kvasir::engine {

double MeanLogProb(const ChoiceResult& choice) {
  if (choice.tokens.empty()) return 0;
  double sum = 0;
  for (const GeneratedToken& token : choice.tokens) sum += token.logprob;
  return sum / static_cast<double>(choice.tokens.size());
}

std::vector<ChoiceResult> BestOf(std::vector<ChoiceResult> choices, std::uint64_t best_of) {
  KV_CHECK(best_of >= 1);
  std::vector<ChoiceResult> best;
  double highest = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const double mean = MeanLogProb(choices[i]);
    if (i % best_of == 0) {
      best.push_back(std::move(choices[i]));
    } else if (mean > highest) {
      best.back() = std::move(choices[i]);
    } else {
      continue;
    }
    highest = mean;
  }
  return best;
}

}  // namespace kvasir::engine
