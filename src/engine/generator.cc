#include "engine/generator.h"

#include <algorithm>
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

// Whether the longest text that may come of a request fits alone: then all do, one after another.
base::Result<void> Generator::CheckFits(const GenerateRequest& request) const {
  const std::uint64_t room = model_.shape().context - request.prompt.size();
  const std::uint64_t tokens = request.prompt.size() + std::min(room, request.max_tokens);
  const kvcache::BlockPoolStats pool = cache_->pool_stats();
  const std::uint64_t blocks = cache_->geometry().BlocksFor(tokens);
  if (blocks <= pool.capacity_blocks) return base::Success();
  return base::MakeError(
      base::ErrorCode::kUsage,
      "the cache budget of {} bytes holds {} tokens, but this text may grow to {}, which take {} "
      "bytes",
      options_.kv_budget_bytes.value_or(pool.capacity_blocks * pool.block_bytes),
      pool.capacity_blocks * cache_->geometry().block_tokens(), tokens, blocks * pool.block_bytes);
}

base::Result<GenerateReport> Generator::Run(std::span<const GenerateRequest> requests,
                                            const Observer& observer) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    base::Result<void> checked = CheckRequest(requests[i], model_.shape());
    if (checked) checked = CheckFits(requests[i]);
    if (checked) continue;
    base::Error error = checked.error();
    if (requests.size() > 1) error.message = fmt::format("prompt {}: {}", i + 1, error.message);
    return error;
  }
  return Session(*this, requests, observer).Run();
}

}  // namespace kvasir::engine
