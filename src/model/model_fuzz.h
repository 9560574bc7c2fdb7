// For fuzz targets of model files: what must hold of any bytes that a reader was given.
#ifndef KVASIR_MODEL_MODEL_FUZZ_H_
#define KVASIR_MODEL_MODEL_FUZZ_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "kvcache/block_pool.h"
#include "model/model.h"

namespace kvasir::model {

inline constexpr std::size_t kFuzzVocab = 3;  // Of the seeds' embeddings.

// An Error of one line; or a model that computes a step, or refuses it for its short context.
template <typename AnyModel>
void CheckReadModel(const base::Result<std::unique_ptr<AnyModel>>& read) {
  if (!read) {
    KV_CHECK(read.error().message.find('\n') == std::string::npos);
    return;
  }
  const AnyModel& model = *read.value();
  const auto geometry = kvcache::CacheGeometry::Make(model.shape().Cache(16));
  KV_CHECK(geometry.has_value());
  const auto pool =
      kvcache::BlockPool::Make(geometry.value(), {.budget_bytes = geometry.value().block_bytes()});
  KV_CHECK(pool.has_value());
  kvcache::CachedSequence sequence(*pool.value());
  const TokenId tokens[] = {0, 2, 1};
  const BatchItem item{&sequence, tokens, 1};
  Scratch scratch;
  base::ThreadTeam team(1);
  std::vector<float> logits(kFuzzVocab);
  const auto done = model.Forward(std::span(&item, 1), scratch, team, logits);
  KV_CHECK(done.has_value() || model.shape().context < std::size(tokens));
}

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_MODEL_FUZZ_H_
