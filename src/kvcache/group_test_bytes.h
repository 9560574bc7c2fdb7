// For tests and the fuzz target: which bytes of a block belong to one position, found with nothing
// but the words of kernels/kv_type.h, kernels/kv_view.h and cache_group.h, and what they must be.
#ifndef KVASIR_KVCACHE_GROUP_TEST_BYTES_H_
#define KVASIR_KVCACHE_GROUP_TEST_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "kvcache/cache_geometry.h"

namespace kvasir::kvcache {

// The three kinds of bytes of a position in a part.
enum class SlotKind {
  kStored,   // Written with the position: values, keys or the hidden row. In a block of part.group.
  kRounded,  // Keys rounded by channel once their group of positions is complete. Likewise.
  kTail,     // Those keys in f32. In a block of part.tail_group.
};

// Bytes are a function of a stamp, so that a copy is right exactly if it has the stamp expected.
class SlotBytes {
 public:
  explicit SlotBytes(const CacheGeometry& geometry) : geometry_(geometry) {}

  void Write(const CachePart& part, SlotKind kind, std::byte* block, std::size_t slot,
             std::uint32_t stamp) const {
    std::uint32_t state = Start(part, kind, slot, stamp);
    ForEach(part, kind, slot, [&](std::size_t at, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) block[at + i] = Next(state);
    });
  }
  bool Holds(const CachePart& part, SlotKind kind, const std::byte* block, std::size_t slot,
             std::uint32_t stamp) const {
    std::uint32_t state = Start(part, kind, slot, stamp);
    bool equal = true;
    ForEach(part, kind, slot, [&](std::size_t at, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) equal = block[at + i] == Next(state) && equal;
    });
    return equal;
  }

  // Calls visit(offset, count) for every run of the slot's bytes in its block.
  template <typename Visit>
  void ForEach(const CachePart& part, SlotKind kind, std::size_t slot, const Visit& visit) const {
    const std::size_t dim = geometry_.head_dim();
    const bool by_channel = part.policy.k == kernels::KvType::kInt4Channel;
    if (kind == SlotKind::kStored && part.policy.store == KvStore::kHidden) {
      visit(part.row_offset + slot * geometry_.hidden_dim() * 4, geometry_.hidden_dim() * 4);
      return;
    }
    for (std::size_t head = 0; head < part.heads; ++head) {
      const std::size_t tile = head * (geometry_.block_tokens() / 16) + slot / 16;
      const Place keys = {.offset = part.k_offset, .tile = tile, .lane = slot % 16, .is_key = true};
      const Place values = {.offset = part.v_offset, .tile = tile, .lane = slot % 16};
      const Place tail = {
          .offset = part.tail_offset, .tile = tile, .lane = slot % 16, .is_key = true};
      switch (kind) {
        case SlotKind::kStored:
          if (!by_channel) InTile(part.policy.k, keys, dim, visit);
          InTile(part.policy.v, values, dim, visit);
          break;
        case SlotKind::kTail:
          InTile(kernels::KvType::kF32, tail, dim, visit);
          break;
        case SlotKind::kRounded: {
          InTile(kernels::KvType::kInt4Channel, keys, dim, visit);
          // bf16 scales [head_dim] and minima [head_dim] of the group, counted with its last slot.
          const std::size_t group = part.policy.group;
          if (slot % group != group - 1) break;
          const std::size_t index = head * (geometry_.block_tokens() / group) + slot / group;
          visit(part.k_scale_offset + index * dim * 4, dim * 4);
          break;
        }
      }
    }
  }

 private:
  struct Place {
    std::size_t offset;  // Of the part's keys or values.
    std::size_t tile;    // Of 16 positions and one head.
    std::size_t lane;
    bool is_key = false;
  };

  // Numbers of a key lie a lane apart, those of a value side by side; then scales and minima.
  template <typename Visit>
  static void InTile(kernels::KvType type, const Place& place, std::size_t dim,
                     const Visit& visit) {
    using kernels::KvType;
    std::size_t numbers = dim;  // Of a position.
    std::size_t width = 1;      // Bytes.
    std::size_t scales = 0;     // bf16 [16] arrays that follow.
    if (type == KvType::kF32) width = 4;
    if (type == KvType::kF16 || type == KvType::kBf16) width = 2;
    if (type == KvType::kInt4 || type == KvType::kInt4Channel) numbers = (dim + 1) / 2;
    if (type == KvType::kInt8) scales = 1;
    if (type == KvType::kInt4) scales = 2;
    const std::size_t number_bytes = numbers * width * 16;
    const std::size_t begin = place.offset + place.tile * (number_bytes + scales * 32);
    if (place.is_key) {
      for (std::size_t n = 0; n < numbers; ++n) {
        visit(begin + (n * 16 + place.lane) * width, width);
      }
    } else {
      visit(begin + place.lane * numbers * width, numbers * width);
    }
    for (std::size_t i = 0; i < scales; ++i) {
      visit(begin + number_bytes + i * 32 + place.lane * 2, std::size_t{2});
    }
  }

  static std::uint32_t Start(const CachePart& part, SlotKind kind, std::size_t slot,
                             std::uint32_t stamp) {
    return stamp ^ (part.layer * 2654435761u) ^ (part.first_head * 40503u) ^
           (static_cast<std::uint32_t>(kind) << 28) ^ (static_cast<std::uint32_t>(slot) * 7919u);
  }
  static std::byte Next(std::uint32_t& state) {
    state = state * 1664525u + 1013904223u;
    return static_cast<std::byte>(state >> 24);
  }

  const CacheGeometry& geometry_;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_GROUP_TEST_BYTES_H_
