#include "engine/generator.h"

#include <utility>

#include "base/check.h"
#include "constraints/drawable_tokens.h"
#include "engine/sequence_pool.h"
#include "engine/session.h"

namespace kvasir::engine {

Generator::Generator(const model::Model& model, const tokenizer::Vocabulary& vocabulary,
                     base::ThreadTeam& team, const GeneratorOptions& options,
                     std::unique_ptr<kvcache::SequenceManager> cache)
    : model_(model),
      vocabulary_(vocabulary),
      team_(team),
      options_(options),
      cache_(std::move(cache)),
      drawable_(constraints::DefaultMask(vocabulary)) {}

base::Result<std::unique_ptr<Generator>> Generator::Make(const model::Model& model,
                                                         const tokenizer::Vocabulary& vocabulary,
                                                         base::ThreadTeam& team,
                                                         const GeneratorOptions& options) {
  KV_CHECK(vocabulary.size() == model.shape().vocab);
  KV_TRY(auto cache, MakeSequenceManager(model.shape(), options));
  return std::unique_ptr<Generator>(
      new Generator(model, vocabulary, team, options, std::move(cache)));
}

base::Result<GenerateReport> Generator::Run(std::span<const GenerateRequest> requests,
                                            const Observer& observer) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    base::Result<void> checked = CheckRequest(requests[i], model_.shape());
    if (checked) {
      checked = CheckBudget(model_.shape(), options_, MostPositions(requests[i], model_.shape()));
    }
    if (checked) continue;
    base::Error error = checked.error();
    if (requests.size() > 1) error.message = fmt::format("prompt {}: {}", i + 1, error.message);
    return error;
  }
  return Session(*this, requests, observer).Run();
}

}  // namespace kvasir::engine
