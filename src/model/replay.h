// Layers whose keys and values are not stored, computed again from the tokens (store=none).
#ifndef KVASIR_MODEL_REPLAY_H_
#define KVASIR_MODEL_REPLAY_H_

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "kvcache/block_pool.h"
#include "kvcache/sequence.h"
#include "model/model.h"

namespace kvasir::model {

// The lower part of a step in which every position is new: one item for each of the step's, of all
// its tokens so far, in a cache that holds the replayed layers for this step alone. Rows of the new
// positions, or where all layers are replayed those whose logits are wanted, are what goes on.
class Replay {
 public:
  // kUsage if an item's sequence does not know its tokens (CachedSequence::ExtendHistory);
  // kExhausted if the machine has no memory.
  static base::Result<Replay> Make(std::span<const BatchItem> items, const ModelShape& shape);

  std::span<const BatchItem> items() const { return items_; }

 private:
  Replay() = default;

  std::unique_ptr<kvcache::BlockPool> pool_;
  std::vector<kvcache::CachedSequence> sequences_;  // [items]
  std::vector<std::vector<base::TokenId>> tokens_;  // [items][positions]
  std::vector<BatchItem> items_;
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_REPLAY_H_
