#include "engine/generator.h"

#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "constraints/drawable_tokens.h"
#include "engine/sequence_pool.h"
#include "engine/session.h"

namespace kvasir::engine {

Generator::Generator(const model::Model& model, const tokenizer::Vocabulary& vocabulary,
                     base::ThreadTeam& team, const GeneratorOptions& options,
                     std::unique_ptr<kvcache::BlockPool> pool)
    : model_(model),
      vocabulary_(vocabulary),
      team_(team),
      options_(options),
      pool_(std::move(pool)),
      drawable_(constraints::DefaultMask(vocabulary)) {}

base::Result<std::unique_ptr<Generator>> Generator::Make(const model::Model& model,
                                                         const tokenizer::Vocabulary& vocabulary,
                                                         base::ThreadTeam& team,
                                                         const GeneratorOptions& options) {
  KV_CHECK(vocabulary.size() == model.shape().vocab);
  // Running sequences, and as many stems that they are forked from.
  const auto sequences = base::CheckedMul(2, options.max_batch);
  if (!sequences) {
    return base::MakeError(base::ErrorCode::kUsage, "a batch of {} sequences is too large",
                           options.max_batch);
  }
  KV_TRY(auto pool, MakeSequencePool(model.shape(), options, *sequences));
  return std::unique_ptr<Generator>(
      new Generator(model, vocabulary, team, options, std::move(pool)));
}

base::Result<GenerateReport> Generator::Run(std::span<const GenerateRequest> requests,
                                            const Observer& observer) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto checked = CheckRequest(requests[i], model_.shape());
    if (checked) continue;
    base::Error error = checked.error();
    if (requests.size() > 1) error.message = fmt::format("prompt {}: {}", i + 1, error.message);
    return error;
  }
  return Session(*this, requests, observer).Run();
}

}  // namespace kvasir::engine
