#include "kvcache/block_copy.h"

#include <cstring>

#include "base/check.h"
#include "kernels/kv_type.h"
#include "kernels/kv_view.h"

namespace kvasir::kvcache {
namespace {

using kernels::KvType;

// One block's bytes and where they go.
struct Copy {
  const std::byte* from;
  std::byte* to;
  void operator()(std::uint64_t offset, std::uint64_t bytes) const {
    std::memcpy(to + offset, from + offset, bytes);
  }
};

struct Tiles {
  std::uint64_t filled;  // That hold a filled slot.
  std::uint64_t all;     // Of a head in a block.
};

// [heads][tiles] from offset on.
void CopyTiles(const Copy& copy, std::uint32_t heads, const Tiles& tiles, std::uint64_t offset,
               std::uint64_t tile_bytes) {
  for (std::uint32_t head = 0; head < heads; ++head) {
    copy(offset + head * tiles.all * tile_bytes, tiles.filled * tile_bytes);
  }
}

void CopyKeysAndValues(const CacheGeometry& geometry, const CachePart& part, std::uint32_t slots,
                       const Copy& copy) {
  const std::size_t head_dim = geometry.head_dim();
  const HeadPolicy& policy = part.policy;
  const Tiles tiles = {.filled = (slots + kernels::kLanes - 1) / kernels::kLanes,
                       .all = geometry.block_tokens() / kernels::kLanes};
  CopyTiles(copy, part.heads, tiles, part.k_offset, kernels::KTileBytes(policy.k, head_dim));
  if (policy.k == KvType::kInt4Channel) {
    const Tiles groups = {.filled = slots / policy.group,
                          .all = geometry.block_tokens() / policy.group};
    CopyTiles(copy, part.heads, groups, part.k_scale_offset, kernels::ChannelScaleBytes(head_dim));
  }
  const std::uint64_t tile_bytes = kernels::VTileBytes(policy.v, head_dim);
  if (policy.v != KvType::kF32) {
    CopyTiles(copy, part.heads, tiles, part.v_offset, tile_bytes);
    return;
  }
  for (std::uint32_t head = 0; head < part.heads; ++head) {
    copy(part.v_offset + head * tiles.all * tile_bytes, slots * head_dim * sizeof(float));
  }
}

}  // namespace

void CopySlots(const CacheGeometry& geometry, CacheGroupId group, std::uint32_t slots,
               const std::byte* from, std::byte* to) {
  KV_CHECK(slots <= geometry.block_tokens());
  const Copy copy = {from, to};
  for (const CachePart& part : geometry.all_parts()) {
    if (part.tail_group == group) {
      const Tiles tiles = {.filled = (slots + kernels::kLanes - 1) / kernels::kLanes,
                           .all = geometry.block_tokens() / kernels::kLanes};
      CopyTiles(copy, part.heads, tiles, part.tail_offset,
                kernels::KTileBytes(KvType::kF32, geometry.head_dim()));
    }
    if (part.group != group) continue;
    if (geometry.is_latent()) {
      const std::uint64_t width = std::uint64_t{geometry.latent_dim()} + geometry.rope_dim();
      copy(part.row_offset, slots * width * sizeof(float));
    } else if (part.policy.store == KvStore::kHidden) {
      copy(part.row_offset, std::uint64_t{slots} * geometry.hidden_dim() * sizeof(float));
    } else {
      CopyKeysAndValues(geometry, part, slots, copy);
    }
  }
}

}  // namespace kvasir::kvcache
