// What a step does with the keys and values of a layer, under any cache policy: stores them, rounds
// groups of keys, rebuilds what is kept as hidden values, and attends.
#ifndef KVASIR_MODEL_STEP_CACHE_H_
#define KVASIR_MODEL_STEP_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_team.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kvcache/cache_geometry.h"
#include "model/model.h"
#include "model/step_rows.h"

namespace kvasir::model {

// One row's numbers in a layer.
struct HeadRow {
  float* q = nullptr;  // [heads · head_dim]; rotated in place where the policy says so
  float* k = nullptr;  // [kv_heads · head_dim], likewise
  float* v = nullptr;  // [kv_heads · head_dim], likewise
  const float* unturned_k = nullptr;  // [kv_heads · head_dim] before RoPE; k where there is none
  const float* hidden = nullptr;      // [embedding] the layer's normed input
};

// The queries of a step's rows. Row strides are those of the whole matrices.
struct AttendArgs {
  const float* q = nullptr;  // [rows][heads · head_dim]
  std::size_t q_stride = 0;
  float scale = 1.0f;
  std::size_t window = kernels::kNoWindow;  // The model's own, in this layer.
  float* out = nullptr;                     // [rows or wanted rows][heads · head_dim]
  std::size_t out_stride = 0;
};

// Rotary positions, where the model has them.
struct StepRotary {
  std::span<const double> frequencies = {};  // [pairs]; empty: learned positions
  kernels::RopePairing pairing = kernels::RopePairing::kNeighbours;
};

// The product that makes a layer's keys and values from its normed input.
struct KeyValueProduct {
  const kernels::PackedMatrix* weight = nullptr;  // [outputs, embedding]
  std::span<const float> bias = {};
  std::size_t first_output = 0;  // Of the keys; the values follow them.
};

// Belongs to one step; its buffers lie in the step's scratch. Methods that take a Member are called
// by every member of the team; a barrier must follow before another member's work is read.
class StepCache {
 public:
  // Uses scratch slots first_slot … first_slot + 3.
  StepCache(const StepRows& rows, const ModelShape& shape, const StepRotary& rotary,
            Scratch& scratch, std::size_t first_slot);

  // Before the first layer: where the sinks of each row stand.
  void TurnSinks(const base::Member& member) const;

  // Stores a row of this layer; only the member that made it.
  void StoreRow(const RowSlice& slice, std::size_t layer, std::size_t position,
                const HeadRow& row) const;
  // Rebuilds this layer's keys and values of earlier positions, where only its hidden values are
  // kept. finish(position, outputs) does what the model does with the product's row [outputs of
  // weight] until it is stored, in place.
  template <typename Finish>
  void Rebuild(const base::Member& member, std::size_t layer, const KeyValueProduct& product,
               const Finish& finish) const {
    const std::vector<Target> targets = RebuildTargets(layer);
    const base::IndexRange share = member.Share(targets.size());
    constexpr std::size_t kRowsAtOnce = 48;
    for (std::size_t begin = share.begin; begin < share.end; begin += kRowsAtOnce) {
      const std::size_t end = std::min(share.end, begin + kRowsAtOnce);
      MultiplyHidden(std::span(targets).subspan(begin, end - begin), layer, product, begin);
      for (std::size_t i = begin; i < end; ++i) {
        float* outputs = rebuilt_ + i * product.weight->n();
        finish(targets[i].position, outputs);
        const float* k = outputs + product.first_output;
        kernels::StoreKv(RebuiltView(targets[i].slice), targets[i].position, k,
                         k + shape_.kv_heads * shape_.head_dim);
      }
    }
  }
  // After all rows are stored: rounds the groups of keys that this step completes. Whether there
  // may be any, so that the caller needs a barrier around it, NeedsGroups() says.
  bool NeedsGroups() const { return needs_groups_; }
  void CompleteGroups(const base::Member& member, std::size_t layer) const;

  // This member's part of the layer's attention; of the wanted rows only, if `last`.
  void Attend(const base::Member& member, std::size_t layer, bool last,
              const AttendArgs& args) const;

 private:
  // Sinks that stand before a window of this width.
  struct SinkSet {
    std::uint64_t window;
    std::uint64_t sinks;
    std::size_t offset;  // Floats, in a row of sink_turns_.
  };
  struct Rebuilt {
    std::vector<std::byte*> blocks;  // By entry.
    std::uint32_t block_tokens = 0;
  };
  // A part's queries in one slice.
  struct PartWork {
    const RowSlice* slice;
    std::size_t slice_index;
    const kvcache::CachePart* part;
    std::size_t count;    // Queries,
    std::size_t skipped;  // after so many rows of the slice.
  };

  // A position whose keys and values are rebuilt.
  struct Target {
    std::size_t slice;  // index
    std::size_t position;
  };

  void FindNeeds();
  void PlaceRebuilt(Scratch& scratch, std::size_t slot);
  std::vector<Target> RebuildTargets(std::size_t layer) const;
  // Rows [first, first + targets) of rebuilt_.
  void MultiplyHidden(std::span<const Target> targets, std::size_t layer,
                      const KeyValueProduct& product, std::size_t first) const;
  kernels::KvView RebuiltView(std::size_t slice) const;
  const SinkSet* SinksOf(const kvcache::CachePart& part) const;
  std::size_t HeadsPerUnit(const base::Member& member, std::size_t queries) const;
  kernels::AttentionArgs ArgsOf(const PartWork& work, bool last, const AttendArgs& args) const;

  const StepRows& rows_;
  const ModelShape& shape_;
  const StepRotary rotary_;
  StepTap* const tap_;
  bool needs_groups_ = false;
  std::vector<SinkSet> sink_sets_;
  std::size_t sink_stride_ = 0;
  float* sink_turns_ = nullptr;         // [rows][sets][sinks][2][pairs]
  bool rebuilds_ = false;               // Whether anything is kept as hidden values.
  float* gathered_ = nullptr;           // [positions to rebuild][embedding]
  float* rebuilt_ = nullptr;            // [positions to rebuild][outputs of the product]
  std::vector<Rebuilt> rebuilt_views_;  // [slices]
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_STEP_CACHE_H_
