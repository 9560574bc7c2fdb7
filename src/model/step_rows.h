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
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "model/model.h"

namespace kvasir::model {

// Checks the items and reserves their slots. kUsage for a token outside the vocabulary, or a
// sequence that would outgrow the context; kExhausted. logits: the numbers there is room for.
base::Result<void> PrepareItems(std::span<const BatchItem> items, const ModelShape& shape,
                                std::size_t logits);

// Model::Forward around the architecture's own part: compute() runs once every item has its slots,
// and the sequences grow when it has returned.
template <typename Compute>
base::Result<void> ForwardItems(std::span<const BatchItem> items, const ModelShape& shape,
                                std::span<float> logits, const Compute& compute) {
  KV_TRY(PrepareItems(items, shape, logits.size()));
  if (items.empty()) return base::Success();
  compute();
  for (const BatchItem& item : items) item.sequence->Advance(item.tokens.size());
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

// Attention of one layer over every item's cache. Row strides are those of the whole matrices.
struct AttendArgs {
  const float* q = nullptr;  // [rows][heads · head_dim]
  std::size_t q_stride = 0;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  float scale = 1.0f;
  std::size_t window = kernels::kNoWindow;
  float* out = nullptr;  // [rows or wanted rows][heads · head_dim]
  std::size_t out_stride = 0;
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

  // This member's part of the layer's attention; of the wanted rows only, if `last`.
  void Attend(const base::Member& member, std::size_t layer, bool last,
              const AttendArgs& args) const;

 private:
  std::size_t HeadsPerUnit(const base::Member& member, std::size_t queries,
                           const AttendArgs& args) const;

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
