#include "model/replay.h"

#include <utility>

#include "base/check.h"

namespace kvasir::model {
namespace {

using kvcache::CacheGeometry;
using kvcache::CachePart;
using kvcache::HeadPolicy;

// The replayed layers alone, with keys and values of every head: what a head sees and how they are
// rounded stay as they are.
base::Result<CacheGeometry> ReplayedGeometry(const CacheGeometry& geometry,
                                             const ModelShape& shape) {
  std::vector<HeadPolicy> heads;
  for (std::uint32_t layer = 0; layer < geometry.replayed_layers(); ++layer) {
    for (const CachePart& part : geometry.parts(layer)) {
      HeadPolicy policy = part.policy;
      policy.store = kvcache::KvStore::kKv;
      heads.insert(heads.end(), part.heads, policy);
    }
  }
  kvcache::CacheGeometryOptions options = shape.Cache(geometry.block_tokens());
  options.layers = geometry.replayed_layers();
  options.max_block_tokens = geometry.block_tokens();
  options.policy = kvcache::CachePolicy::Of(options.layers, shape.kv_heads, std::move(heads));
  return CacheGeometry::Make(options);
}

}  // namespace

base::Result<Replay> Replay::Make(std::span<const BatchItem> items, const ModelShape& shape) {
  const CacheGeometry& geometry = items[0].sequence->geometry();
  KV_TRY(const CacheGeometry replayed, ReplayedGeometry(geometry, shape));
  Replay replay;
  std::uint64_t blocks = 0;
  for (const BatchItem& item : items) {
    KV_CHECK(item.sequence->geometry() == geometry);
    const std::span<const base::TokenId> history = item.sequence->history();
    if (history.size() != item.sequence->length()) {
      return base::MakeError(base::ErrorCode::kUsage,
                             "a sequence of {} positions knows the tokens of {}, but its cache "
                             "policy computes layers again from the tokens of all",
                             item.sequence->length(), history.size());
    }
    std::vector<base::TokenId> tokens(history.begin(), history.end());
    tokens.insert(tokens.end(), item.tokens.begin(), item.tokens.end());
    blocks += replayed.BlocksFor(tokens.size());
    replay.tokens_.push_back(std::move(tokens));
  }
  KV_TRY(replay.pool_,
         kvcache::BlockPool::Make(replayed, {.budget_bytes = blocks * replayed.block_bytes()}));
  replay.sequences_.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    kvcache::CachedSequence& sequence = replay.sequences_.emplace_back(*replay.pool_);
    KV_TRY(sequence.Reserve(replay.tokens_[i].size()));
    const bool whole = replayed.layers() == shape.layers;
    replay.items_.push_back(
        {&sequence, replay.tokens_[i], whole ? items[i].logit_rows : items[i].tokens.size()});
  }
  return replay;
}

}  // namespace kvasir::model
