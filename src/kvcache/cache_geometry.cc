#include "kvcache/cache_geometry.h"

#include <optional>
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

}  // namespace

Result<CacheGeometry> CacheGeometry::Make(const CacheGeometryOptions& options) {
  KV_TRY(CheckRange("layers", options.layers, kMaxLayers));
  KV_TRY(CheckRange("kv_heads", options.kv_heads, kMaxKvHeads));
  KV_TRY(CheckRange("head_dim", options.head_dim, kMaxHeadDim));
  const std::uint64_t block_tokens = options.block_tokens;
  if (block_tokens == 0 || block_tokens > kMaxBlockTokens || block_tokens % kernels::kLanes != 0) {
    return MakeError(ErrorCode::kUsage, "block_tokens is {}, but must be a multiple of {} up to {}",
                     block_tokens, kernels::kLanes, kMaxBlockTokens);
  }
  const std::uint64_t k_and_v_bytes = 2 * tensor::BytesPerElement(tensor::DType::kF32);
  const std::optional<std::uint64_t> layer_bytes_per_token =
      base::CheckedProduct({options.kv_heads, options.head_dim, k_and_v_bytes});
  const std::optional<std::uint64_t> block_bytes = base::CheckedProduct(
      {options.layers, block_tokens, options.kv_heads, options.head_dim, k_and_v_bytes});
  if (!layer_bytes_per_token || !block_bytes || *block_bytes > kMaxBlockBytes) {
    return MakeError(ErrorCode::kUsage,
                     "a cache block of layers {} × kv_heads {} × head_dim {} × block_tokens {} × "
                     "{} bytes is over the limit of {} bytes",
                     options.layers, options.kv_heads, options.head_dim, block_tokens,
                     k_and_v_bytes, kMaxBlockBytes);
  }
  CacheGeometry geometry;
  geometry.layers_ = static_cast<std::uint32_t>(options.layers);
  geometry.kv_heads_ = static_cast<std::uint32_t>(options.kv_heads);
  geometry.head_dim_ = static_cast<std::uint32_t>(options.head_dim);
  geometry.block_tokens_ = static_cast<std::uint32_t>(block_tokens);
  geometry.layer_bytes_per_token_ = *layer_bytes_per_token;
  return geometry;
}

}  // namespace kvasir::kvcache
