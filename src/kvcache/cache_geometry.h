// The shape of the cache and every size that follows from it, computed once, in checked 64-bit
// arithmetic. What the rest of the program knows about layouts it asks here.
#ifndef KVASIR_KVCACHE_CACHE_GEOMETRY_H_
#define KVASIR_KVCACHE_CACHE_GEOMETRY_H_

#include <cstdint>

#include "base/check.h"
#include "base/result.h"

namespace kvasir::kvcache {

// Limits, checked before anything is allocated: beyond every published model, and small enough to
// keep all sizes far from 2^64.
inline constexpr std::uint64_t kMaxLayers = 1024;
inline constexpr std::uint64_t kMaxKvHeads = 1024;
inline constexpr std::uint64_t kMaxHeadDim = 1024;
inline constexpr std::uint64_t kMaxBlockTokens = 256;
inline constexpr std::uint64_t kMaxBlockBytes = std::uint64_t{1} << 40;  // 1 TiB

inline constexpr std::uint64_t kDefaultBlockTokens = 16;

// 64 bits each, so that a value from a file or flag arrives unchanged and is refused by name.
// What a layer keeps of a position is one of two kinds of entry: keys and values of kv_heads heads,
// or, where latent_dim is set, the latent of multi-head latent attention, which all heads share.
struct CacheGeometryOptions {
  std::uint64_t layers = 0;                          // 1 … kMaxLayers
  std::uint64_t kv_heads = 0;                        // 1 … kMaxKvHeads; 0 in a latent cache
  std::uint64_t head_dim = 0;                        // 1 … kMaxHeadDim; 0 in a latent cache
  std::uint64_t block_tokens = kDefaultBlockTokens;  // 16, 32, … kMaxBlockTokens
  std::uint64_t latent_dim = 0;                      // 1 … kMaxHeadDim; 0 in a cache of K and V
  std::uint64_t rope_dim = 0;  // 0 … kMaxHeadDim beside latent_dim: the shared rotated key
  // For measurements, which compare blocks with one as long as a text. Below 2^32.
  std::uint64_t max_block_tokens = kMaxBlockTokens;
};

// A value; immutable once made; thread-safe. A block holds block_tokens positions of all layers,
// one layer after the other. Keys and values: K before V, each as kernels::KvView documents:
//   layer l, K: f32 [kv_heads][block_tokens / 16][head_dim][16]  at k_offset(l)
//   layer l, V: f32 [kv_heads][block_tokens][head_dim]           at v_offset(l)
// A latent cache, as kernels::LatentView documents; there is no second copy for values:
//   layer l:    f32 [block_tokens][latent_dim + rope_dim]        at latent_offset(l)
//
// Invariants:
//   1. Every offset and block_bytes() is a multiple of 64 whatever the widths are: each part holds
//      block_tokens · 4 bytes a column, and block_tokens is a multiple of 16.
//   2. So there is no padding: block_bytes() = block_tokens() · bytes_per_token().
//   3. One kind of entry: latent_dim() is 0 exactly if kv_heads() and head_dim() are not.
class CacheGeometry {
 public:
  // kUsage naming the setting, its value and what is allowed.
  static base::Result<CacheGeometry> Make(const CacheGeometryOptions& options);

  std::uint32_t layers() const { return layers_; }
  std::uint32_t kv_heads() const { return kv_heads_; }
  std::uint32_t head_dim() const { return head_dim_; }
  std::uint32_t block_tokens() const { return block_tokens_; }
  bool is_latent() const { return latent_dim_ != 0; }
  std::uint32_t latent_dim() const { return latent_dim_; }
  std::uint32_t rope_dim() const { return rope_dim_; }

  // What is kept of one position, K and V or the latent entry: in one layer; in all.
  std::uint64_t layer_bytes_per_token() const { return layer_bytes_per_token_; }
  std::uint64_t bytes_per_token() const { return layers_ * layer_bytes_per_token_; }
  // One block: the part of one layer; all of it.
  std::uint64_t layer_block_bytes() const { return block_tokens_ * layer_bytes_per_token_; }
  std::uint64_t block_bytes() const { return layers_ * layer_block_bytes(); }

  // Where a layer's part starts in a block, in bytes. Requires layer < layers().
  std::uint64_t layer_offset(std::uint64_t layer) const {
    KV_CHECK(layer < layers_);
    return layer * layer_block_bytes();
  }
  // Where its K and V start. Requires that this is no latent cache.
  std::uint64_t k_offset(std::uint64_t layer) const {
    KV_CHECK(!is_latent());
    return layer_offset(layer);
  }
  std::uint64_t v_offset(std::uint64_t layer) const {
    return k_offset(layer) + layer_block_bytes() / 2;
  }
  // Where its latent rows start. Requires that this is a latent cache.
  std::uint64_t latent_offset(std::uint64_t layer) const {
    KV_CHECK(is_latent());
    return layer_offset(layer);
  }

  // Blocks that hold this many positions: the quotient rounded up; never overflows.
  std::uint64_t BlocksFor(std::uint64_t tokens) const {
    return tokens / block_tokens_ + (tokens % block_tokens_ != 0 ? 1 : 0);
  }

  friend bool operator==(const CacheGeometry&, const CacheGeometry&) = default;

 private:
  CacheGeometry() = default;

  std::uint32_t layers_ = 0;
  std::uint32_t kv_heads_ = 0;
  std::uint32_t head_dim_ = 0;
  std::uint32_t block_tokens_ = 0;
  std::uint32_t latent_dim_ = 0;
  std::uint32_t rope_dim_ = 0;
  std::uint64_t layer_bytes_per_token_ = 0;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_CACHE_GEOMETRY_H_
