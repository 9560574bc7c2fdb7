// Writing keys and values into a KvView, and reading back what queries will see.
#ifndef KVASIR_KERNELS_KV_STORE_H_
#define KVASIR_KERNELS_KV_STORE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kv_view.h"

namespace kvasir::kernels {

// Rounds key and value rows ([kv_heads · head_dim] each) of one position and writes them into the
// view (kv_rounding.h). Keys of kInt4Channel go to the tail alone, in f32.
void StoreKv(const KvView& view, std::size_t position, const float* k_row, const float* v_row);

// Stops the program unless the view's group is one that kInt4Channel allows.
inline constexpr std::size_t kMaxKeyGroup = 256;
void CheckKeyGroup(const KvView& view);

// kInt4Channel: rounds the keys of one kv head at positions index · group … + group − 1, which the
// tail holds, into tiles and scales. Once all of them are stored and before attention of a query
// beyond them. Blocks that are null are left out; their positions count for the scales.
void CompleteKeyGroup(const KvView& view, std::size_t group_index, std::size_t kv_head);

// The number that stands for a key or value as queries read it, for dumps and tests: k, v
// [head_dim], of one kv head. Keys of kInt4Channel are read as a query at position `reader` does:
// from the tail if it is in the same group, else rounded; kLaterGroup: rounded.
inline constexpr std::size_t kLaterGroup = SIZE_MAX;
void LoadKv(const KvView& view, std::size_t position, std::size_t kv_head, float* k, float* v,
            std::size_t reader = kLaterGroup);
void LoadKey(const KvView& view, std::size_t position, std::size_t kv_head, std::size_t reader,
             float* k);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_KV_STORE_H_
