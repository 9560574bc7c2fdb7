// Keys and values of a micro-batch's sequences as attention's kernel reads them: those of a run of
// kv heads of one layer that the cache treats alike.
#ifndef KVASIR_TRAINING_KV_RUN_H_
#define KVASIR_TRAINING_KV_RUN_H_

#include <cstddef>
#include <vector>

#include "base/thread_team.h"
#include "kernels/kv_view.h"
#include "training/network_plan.h"

namespace kvasir::training {

// Knows where things lie; the bytes belong to others, and the layers of a network share them.
// Single-threaded but for Store and Complete.
class KvRun {
 public:
  static constexpr std::size_t kBlockTokens = 64;

  KvRun(const AttentionPlan& plan, const HeadRun& heads);

  const HeadRun& heads() const { return heads_; }

  // Bytes of so many sequences' blocks, a multiple of 64.
  std::size_t Bytes(std::size_t sequences, std::size_t context) const;
  // Takes `Bytes` bytes, aligned to 64.
  void Place(std::byte* bytes, std::size_t sequences, std::size_t context);

  // The blocks of a sequence of a micro-batch whose sequences have this length.
  kernels::KvView View(std::size_t sequence, std::size_t length) const;

  // Stores a position; k and v are rows of all the layer's heads.
  void Store(std::size_t sequence, std::size_t length, std::size_t position, const float* k,
             const float* v) const;
  // Rounds the groups of keys that are complete in sequences of this length: this member's share.
  void CompleteGroups(const base::Member& member, std::size_t sequences, std::size_t length) const;

 private:
  std::size_t BlockBytes() const { return end_; }
  bool has_groups() const { return heads_.has_groups(); }

  std::size_t head_dim_;
  HeadRun heads_;
  std::size_t v_offset_, scale_offset_, tail_offset_, end_;  // In a block.
  std::vector<std::byte*> blocks_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_KV_RUN_H_
