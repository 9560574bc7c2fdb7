#include "kvcache/cache_geometry.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "kernels/kv_view.h"
#include "tensor/dtype.h"

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
  constexpr std::uint64_t kElementBytes = tensor::BytesPerElement(tensor::DType::kF32);
  // The widths were checked, so this sum of small numbers cannot wrap.
  const std::optional<std::uint64_t> values =
      options.latent_dim == 0 ? base::CheckedProduct({options.kv_heads, options.head_dim, 2})
                              : options.latent_dim + options.rope_dim;
  const std::optional<std::uint64_t> block_bytes =
      values ? base::CheckedProduct({options.layers, block_tokens, *values, kElementBytes})
             : std::nullopt;
  if (!block_bytes || *block_bytes > kMaxBlockBytes) {
    return MakeError(ErrorCode::kUsage,
                     "a cache block of layers {} × {} values × block_tokens {} × {} bytes is over "
                     "the limit of {} bytes",
                     options.layers, EntryText(options), block_tokens, kElementBytes,
                     kMaxBlockBytes);
  }
  CacheGeometry geometry;
  geometry.layers_ = static_cast<std::uint32_t>(options.layers);
  geometry.kv_heads_ = static_cast<std::uint32_t>(options.kv_heads);
  geometry.head_dim_ = static_cast<std::uint32_t>(options.head_dim);
  geometry.block_tokens_ = static_cast<std::uint32_t>(block_tokens);
  geometry.latent_dim_ = static_cast<std::uint32_t>(options.latent_dim);
  geometry.rope_dim_ = static_cast<std::uint32_t>(options.rope_dim);
  geometry.layer_bytes_per_token_ = *values * kElementBytes;
  return geometry;
}

}  // namespace kvasir::kvcache
