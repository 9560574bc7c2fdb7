// The rows of one step: what the forward passes of all architectures share, so that each of them
// shows only what is its own.
#ifndef KVASIR_MODEL_STEP_ROWS_H_
#define KVASIR_MODEL_STEP_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/matmul.h"
#include "model/model.h"
#include "model/replay.h"
#include "model/step_tap.h"

namespace kvasir::model {

// Checks the items and reserves their slots. kUsage for a token outside the vocabulary, or a
// sequence that would outgrow the context; kExhausted. logits: the numbers there is room for.
base::Result<void> PrepareItems(std::span<const BatchItem> items, const ModelShape& shape,
                                std::size_t logits);

// Part of a step: layers [begin, end). Rows enter the first one from their embeddings, or as the
// residual stream that the part before has left; what goes on after the last one are the rows whose
// logits are wanted, and where that is the model's last, their logits.
struct StepLayers {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Model::Forward around the architecture's own part: run(items, layers) computes layers of a step
// once every item has its slots, and the sequences grow when it has returned. Where layers are not
// stored (store=none), it runs twice: for all positions up to the last such layer, over caches that
// live for this step, then for the new ones. Items whose layers are replayed must be of one
// geometry.
template <typename Run>
base::Result<void> ForwardItems(std::span<const BatchItem> items, const ModelShape& shape,
                                std::span<float> logits, const Run& run) {
  KV_TRY(PrepareItems(items, shape, logits.size()));
  if (items.empty()) return base::Success();
  const std::size_t replayed = items[0].sequence->geometry().replayed_layers();
  if (replayed > 0) {
    KV_TRY(const Replay replay, Replay::Make(items, shape));
    run(replay.items(), StepLayers{0, replayed});
  }
  if (replayed < shape.layers) run(items, StepLayers{replayed, shape.layers});
  for (const BatchItem& item : items) {
    item.sequence->Advance(item.tokens.size());
    item.sequence->ExtendHistory(item.tokens);
  }
  return base::Success();
}

// Where an item's rows lie in the step's matrices.
struct RowSlice {
  const BatchItem* item;
  std::size_t first_row;       // Among all rows.
  std::size_t first_wanted;    // Among the rows with logits.
  std::size_t first_position;  // Of its first token.

  TokenId TokenOf(std::size_t row) const { return item->tokens[row - first_row]; }
  std::size_t PositionOf(std::size_t row) const { return first_position + row - first_row; }
};

// Immutable; thread-safe. All items' rows lie one after the other; in the last layer only those
// whose logits are wanted go on once K and V are stored, since nothing else reads the others.
class StepRows {
 public:
  explicit StepRows(std::span<const BatchItem> items);

  std::size_t count() const { return count_; }
  std::size_t wanted() const { return wanted_; }  // Rows whose logits are wanted.
  std::span<const RowSlice> slices() const { return slices_; }

  // Calls visit(slice, rows) for every item's part of this member's share of all rows.
  template <typename Visit>
  void VisitShare(const base::Member& member, const Visit& visit) const {
    const base::IndexRange share = member.Share(count_);
    for (const RowSlice& slice : slices_) {
      const std::size_t begin = std::max(share.begin, slice.first_row);
      const std::size_t end = std::min(share.end, slice.first_row + slice.item->tokens.size());
      if (begin < end) visit(slice, base::IndexRange{begin, end});
    }
  }

  // out [wanted][width] = the wanted rows of x [rows][width]. By member 0 alone: a barrier must
  // follow before anyone reads them.
  void CopyWanted(const base::Member& member, const float* x, std::size_t width, float* out) const;

  // Shows a tap, where there is one, the residual stream x [rows][width] that enters this layer;
  // after the last layer, x [wanted][width]. By member 0 alone: a barrier must follow before
  // anyone changes x.
  void ShowHidden(StepTap* tap, const base::Member& member, std::size_t layer, const float* x,
                  std::size_t width) const {
    if (tap != nullptr && member.index() == 0) Show(*tap, layer, /*wanted=*/false, x, width);
  }
  void ShowFinal(StepTap* tap, const base::Member& member, std::size_t layers, const float* x,
                 std::size_t width) const {
    if (tap != nullptr && member.index() == 0) Show(*tap, layers, /*wanted=*/true, x, width);
  }

 private:
  void Show(StepTap& tap, std::size_t layer, bool wanted, const float* x, std::size_t width) const;

  std::vector<RowSlice> slices_;  // [items]
  std::size_t count_ = 0;
  std::size_t wanted_ = 0;
};

// Calls visit(first, count) for each row's numbers of a tile, in a matrix [rows][width].
template <typename Visit>
void VisitTile(const kernels::MatmulTileRange& tile, std::size_t width, const Visit& visit) {
  const std::size_t begin = tile.panels.begin * kernels::kLanes;
  const std::size_t end = std::min(tile.panels.end * kernels::kLanes, width);
  for (std::size_t row = tile.rows.begin; row < tile.rows.end && begin < end; ++row) {
    visit(row * width + begin, end - begin);
  }
}

// out = in · weightᵀ + bias (none if empty), for MatmulShare.
kernels::MatmulArgs Product(const float* in, std::size_t in_stride,
                            const kernels::PackedMatrix& weight, std::span<const float> bias,
                            float* out, std::size_t out_stride);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_STEP_ROWS_H_
