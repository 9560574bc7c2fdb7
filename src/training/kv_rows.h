// Keys and values of a micro-batch's sequences as attention's kernel reads them, one layer at a
// time.
#ifndef KVASIR_TRAINING_KV_ROWS_H_
#define KVASIR_TRAINING_KV_ROWS_H_

#include <cstddef>
#include <vector>

#include "base/aligned.h"
#include "kernels/kv_view.h"
#include "training/micro_batch.h"
#include "training/network_plan.h"

namespace kvasir::training {

// Owns the blocks; the layers of a network share one. Single-threaded but for Store.
class KvRows {
 public:
  static constexpr std::size_t kBlockTokens = 64;

  KvRows(const AttentionPlan& plan, std::size_t sequences, std::size_t context);

  // The blocks of a sequence of a micro-batch whose sequences have this length.
  kernels::KvView View(std::size_t sequence, std::size_t length) const;

 private:
  const AttentionPlan plan_;
  base::AlignedArray<float> floats_;  // [blocks] of K tiles, then V rows, of all kv heads.
  std::vector<std::byte*> blocks_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_KV_ROWS_H_
