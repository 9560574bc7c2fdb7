#include "kvcache/cache_geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "kernels/kv_type.h"
#include "kernels/kv_view.h"

namespace kvasir::kvcache {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

Result<void> CheckRange(std::string_view setting, std::uint64_t value, std::uint64_t max) {
  if (value >= 1 && value <= max) return base::Success();
  return MakeError(ErrorCode::kUsage, "{} is {}, but must be 1 to {}", setting, value, max);
}

// Each width of the entry within its limits, and of one kind only.
Result<void> CheckEntry(const CacheGeometryOptions& options) {
  if (options.latent_dim == 0) {
    KV_TRY(CheckRange("kv_heads", options.kv_heads, kMaxKvHeads));
    KV_TRY(CheckRange("head_dim", options.head_dim, kMaxHeadDim));
    if (options.rope_dim == 0) return base::Success();
    return MakeError(ErrorCode::kUsage,
                     "rope_dim is {}, but must be 0 without latent_dim: keys have head_dim values",
                     options.rope_dim);
  }
  KV_TRY(CheckRange("latent_dim", options.latent_dim, kMaxHeadDim));
  if (options.rope_dim > kMaxHeadDim) {
    return MakeError(ErrorCode::kUsage, "rope_dim is {}, but must be 0 to {}", options.rope_dim,
                     kMaxHeadDim);
  }
  if (options.kv_heads == 0 && options.head_dim == 0) return base::Success();
  return MakeError(ErrorCode::kUsage,
                   "kv_heads {} and head_dim {} must be 0 beside latent_dim {}: all heads share "
                   "one latent entry",
                   options.kv_heads, options.head_dim, options.latent_dim);
}

std::string EntryText(const CacheGeometryOptions& options) {
  if (options.latent_dim == 0) {
    return fmt::format("kv_heads {} × head_dim {} × 2", options.kv_heads, options.head_dim);
  }
  return fmt::format("(latent_dim {} + rope_dim {})", options.latent_dim, options.rope_dim);
}

}  // namespace

// Lays parts out one after the other in the blocks of their groups.
class CacheLayoutBuilder {
 public:
  explicit CacheLayoutBuilder(CacheGeometry& geometry) : geometry_(geometry) {}

  // False if a size is beyond the limit.
  bool Build(const CachePolicy& policy) {
    for (std::uint32_t layer = 0; layer < geometry_.layers_; ++layer) {
      for (const HeadPolicy& head : policy.Layer(layer)) {
        if (head.store == KvStore::kNone) geometry_.replayed_layers_ = layer + 1;
      }
    }
    for (std::uint32_t layer = 0; layer < geometry_.layers_; ++layer) {
      geometry_.first_part_.push_back(geometry_.parts_.size());
      for (std::uint32_t head = 0; head < geometry_.kv_heads_;) {
        CachePart part = {.layer = layer, .first_head = head, .heads = 1};
        part.policy = policy.At(layer, head);
        // One row of hidden values stands for all heads; other runs end where the policy changes.
        while (head + part.heads < geometry_.kv_heads_ &&
               policy.At(layer, head + part.heads) == part.policy) {
          ++part.heads;
        }
        head += part.heads;
        AddPart(part);
      }
    }
    return Finish();
  }

  bool BuildLatent() {
    const std::uint64_t width = std::uint64_t{geometry_.latent_dim_} + geometry_.rope_dim_;
    for (std::uint32_t layer = 0; layer < geometry_.layers_; ++layer) {
      geometry_.first_part_.push_back(geometry_.parts_.size());
      CachePart part = {.layer = layer};
      part.group = GroupOf({});
      part.row_offset = Take(*part.group, Rows(width));
      Push(part);
    }
    return Finish();
  }

 private:
  // f32 [block_tokens][width]
  std::optional<std::uint64_t> Rows(std::uint64_t width) const {
    return base::CheckedProduct({geometry_.block_tokens_, width, sizeof(float)});
  }
  std::optional<std::uint64_t> Tiles(const CachePart& part, std::uint64_t tile_bytes) const {
    return base::CheckedProduct(
        {part.heads, geometry_.block_tokens_ / kernels::kLanes, tile_bytes});
  }

  CacheGroupId GroupOf(const Retention& retention) {
    auto& groups = geometry_.groups_;
    for (std::uint32_t i = 0; i < groups.size(); ++i) {
      if (groups[i].retention == retention) return CacheGroupId(i);
    }
    groups.push_back({.retention = retention});
    return CacheGroupId(static_cast<std::uint32_t>(groups.size() - 1));
  }

  // The offset of so many more bytes in the group's blocks, whose next part starts at a multiple
  // of 64.
  std::uint64_t Take(CacheGroupId id, std::optional<std::uint64_t> bytes) {
    constexpr std::uint64_t kAlign = 64;
    CacheGroup& group = geometry_.groups_[id.index()];
    const std::uint64_t offset = group.block_bytes;
    if (!bytes || *bytes > kMaxBlockBytes || offset > kMaxBlockBytes - *bytes) {
      too_large_ = true;
      return 0;
    }
    group.block_bytes = (offset + *bytes + kAlign - 1) / kAlign * kAlign;
    return offset;
  }

  void AddPart(CachePart part) {
    const HeadPolicy& policy = part.policy;
    const std::size_t head_dim = geometry_.head_dim_;
    // Below a layer that is not stored all rows are computed again, with their keys and values.
    if (part.layer < geometry_.replayed_layers_) {
      part.group = std::nullopt;
    } else if (policy.store == KvStore::kHidden) {
      part.group = GroupOf({.window = policy.window, .sinks = policy.sinks});
      part.row_offset = Take(*part.group, Rows(geometry_.hidden_dim_));
    } else {
      part.group = GroupOf({.window = policy.window, .sinks = policy.sinks});
      part.k_offset = Take(*part.group, Tiles(part, kernels::KTileBytes(policy.k, head_dim)));
      part.v_offset = Take(*part.group, Tiles(part, kernels::VTileBytes(policy.v, head_dim)));
      if (policy.k == kernels::KvType::kInt4Channel) {
        part.k_scale_offset = Take(
            *part.group, base::CheckedProduct({part.heads, geometry_.block_tokens_ / policy.group,
                                               kernels::ChannelScaleBytes(head_dim)}));
        part.tail_group = GroupOf({.tail = policy.group});
        part.tail_offset = Take(*part.tail_group,
                                Tiles(part, kernels::KTileBytes(kernels::KvType::kF32, head_dim)));
      }
    }
    Push(part);
  }

  void Push(CachePart part) {
    if (part.group) part.block_bytes = SizeOf(*part.group) - part.FirstOffset();
    if (part.tail_group) part.tail_block_bytes = SizeOf(*part.tail_group) - part.tail_offset;
    geometry_.parts_.push_back(part);
  }
  std::uint64_t SizeOf(CacheGroupId id) const { return geometry_.groups_[id.index()].block_bytes; }

  bool Finish() {
    geometry_.first_part_.push_back(geometry_.parts_.size());
    for (const CacheGroup& group : geometry_.groups_) {
      geometry_.block_bytes_ += group.block_bytes;
      if (group.retention.tail == 0) geometry_.kept_block_bytes_ += group.block_bytes;
    }
    return !too_large_ && geometry_.block_bytes_ <= kMaxBlockBytes;
  }

  CacheGeometry& geometry_;
  bool too_large_ = false;
};

namespace {

// What the policy needs of the shape around it.
Result<void> CheckPolicy(const CacheGeometryOptions& options) {
  if (!options.policy) return base::Success();
  const CachePolicy& policy = *options.policy;
  if (options.latent_dim != 0) {
    if (policy.IsFull()) return base::Success();
    return MakeError(ErrorCode::kUsage,
                     "cache policy '{}': a cache of latents (MLA) knows only 'full,dtype=f32'",
                     policy.Canonical());
  }
  KV_CHECK(policy.layers() == options.layers && policy.kv_heads() == options.kv_heads);
  for (std::uint64_t layer = 0; layer < options.layers; ++layer) {
    for (std::uint64_t head = 0; head < options.kv_heads; ++head) {
      const HeadPolicy& its = policy.At(layer, head);
      if (its.store == KvStore::kHidden) {
        KV_TRY(CheckRange("hidden_dim", options.hidden_dim, kMaxHiddenDim));
      }
      if (its.k == kernels::KvType::kInt4Channel && options.block_tokens % its.group != 0) {
        return MakeError(ErrorCode::kUsage,
                         "block_tokens is {}, but must be a multiple of group={}: a block holds "
                         "whole groups of positions",
                         options.block_tokens, its.group);
      }
    }
  }
  return base::Success();
}

}  // namespace

Result<CacheGeometry> CacheGeometry::Make(const CacheGeometryOptions& options) {
  KV_TRY(CheckRange("layers", options.layers, kMaxLayers));
  KV_TRY(CheckEntry(options));
  const std::uint64_t block_tokens = options.block_tokens;
  KV_CHECK(options.max_block_tokens <= std::numeric_limits<std::uint32_t>::max());
  if (block_tokens == 0 || block_tokens > options.max_block_tokens ||
      block_tokens % kernels::kLanes != 0) {
    return MakeError(ErrorCode::kUsage, "block_tokens is {}, but must be a multiple of {} up to {}",
                     block_tokens, kernels::kLanes, options.max_block_tokens);
  }
  KV_TRY(CheckPolicy(options));
  CacheGeometry geometry;
  geometry.layers_ = static_cast<std::uint32_t>(options.layers);
  geometry.kv_heads_ = static_cast<std::uint32_t>(options.kv_heads);
  geometry.head_dim_ = static_cast<std::uint32_t>(options.head_dim);
  geometry.block_tokens_ = static_cast<std::uint32_t>(block_tokens);
  geometry.latent_dim_ = static_cast<std::uint32_t>(options.latent_dim);
  geometry.rope_dim_ = static_cast<std::uint32_t>(options.rope_dim);
  geometry.hidden_dim_ = static_cast<std::uint32_t>(options.hidden_dim);
  CacheLayoutBuilder builder(geometry);
  const bool fits =
      options.latent_dim != 0
          ? builder.BuildLatent()
          : builder.Build(options.policy ? *options.policy
                                         : CachePolicy::Full(options.layers, options.kv_heads));
  if (fits) return geometry;
  return MakeError(ErrorCode::kUsage,
                   "a cache block of layers {} × {} values × block_tokens {} × {} bytes is over "
                   "the limit of {} bytes",
                   options.layers, EntryText(options), block_tokens, sizeof(float), kMaxBlockBytes);
}

std::uint64_t BlockStep(const CachePolicy& policy) {
  std::uint64_t step = kernels::kLanes;
  for (std::uint64_t layer = 0; layer < policy.layers(); ++layer) {
    for (const HeadPolicy& head : policy.Layer(layer)) {
      step = std::max<std::uint64_t>(step, head.group);  // Powers of two.
    }
  }
  return step;
}

bool CacheGeometry::IsEndless() const {
  return !is_latent() && replayed_layers_ == 0 &&
         std::ranges::all_of(parts_, [](const CachePart& part) { return part.policy.window > 0; });
}

std::uint64_t CacheGeometry::HeldBytes(std::uint64_t length) const {
  std::uint64_t bytes = 0;
  for (const CacheGroup& group : groups_) {
    const std::uint64_t all = BlocksFor(length);
    const std::uint64_t sinks = std::min(all, BlocksFor(group.retention.sinks));
    const std::uint64_t first = std::min(all, group.retention.FirstNeeded(length) / block_tokens_);
    bytes += (sinks + all - std::max(first, sinks)) * group.block_bytes;
  }
  return bytes;
}

std::uint64_t CacheGeometry::PeakBytes(std::uint64_t length, std::uint64_t step) const {
  std::uint64_t bytes = 0;
  for (const CacheGroup& group : groups_) {
    const Retention& keep = group.retention;
    const std::uint64_t all = BlocksFor(length);
    // From the first position seen at a step's start to its last, whatever their places in blocks.
    const std::uint64_t reach = keep.tail != 0 ? keep.tail : keep.window;
    const std::uint64_t most = keep.KeepsAll() || step > length || reach > length
                                   ? all
                                   : BlocksFor(reach + step) + 1 + BlocksFor(keep.sinks);
    bytes += std::min(all, most) * group.block_bytes;
  }
  return bytes;
}

}  // namespace kvasir::kvcache
