// The shape of the cache and every size that follows from it, computed once, in checked 64-bit
// arithmetic. What the rest of the program knows about layouts it asks here.
#ifndef KVASIR_KVCACHE_CACHE_GEOMETRY_H_
#define KVASIR_KVCACHE_CACHE_GEOMETRY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "kvcache/cache_group.h"
#include "kvcache/cache_policy.h"
#include "kvcache/ids.h"

namespace kvasir::kvcache {

// Limits, checked before anything is allocated: beyond every published model, and small enough to
// keep all sizes far from 2^64.
inline constexpr std::uint64_t kMaxLayers = 1024;
inline constexpr std::uint64_t kMaxKvHeads = 1024;
inline constexpr std::uint64_t kMaxHeadDim = 1024;
inline constexpr std::uint64_t kMaxHiddenDim = std::uint64_t{1} << 20;
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
  std::uint64_t hidden_dim = 0;  // The model's width: 1 … kMaxHiddenDim for store=hidden.
  // Null: everything full, in f32. Its layers and kv heads must be these.
  std::optional<CachePolicy> policy = std::nullopt;
};

// A value; immutable once made; thread-safe. A block holds block_tokens positions of all parts of
// its group, layer by layer, head by head: of a part first its keys, then its values, as
// kernels::KvView documents. Where all is full and f32 there is one group, and of each layer one
// part:
//   layer l, K: f32 [kv_heads][block_tokens / 16][head_dim][16]  at k_offset(l)
//   layer l, V: f32 [kv_heads][block_tokens][head_dim]           at v_offset(l)
// A latent cache, as kernels::LatentView documents; there is no second copy for values:
//   layer l:    f32 [block_tokens][latent_dim + rope_dim]        at latent_offset(l)
//
// Invariants:
//   1. Every offset and block size is a multiple of 64. In f32 that needs no padding: each part
//      holds block_tokens · 4 bytes a column, and block_tokens is a multiple of 16.
//   2. Parts of one group do not overlap and lie within its blocks.
//   3. One kind of entry: latent_dim() is 0 exactly if kv_heads() and head_dim() are not.
//   4. Every kv head of every layer is in one part. Two parts have one group exactly if they keep
//      the same positions.
//   5. Where keys are rounded by channel, a block holds whole groups of positions.
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
  std::uint32_t hidden_dim() const { return hidden_dim_; }

  // May be empty: nothing is stored then.
  std::span<const CacheGroup> groups() const { return groups_; }
  const CacheGroup& group(CacheGroupId id) const { return groups_[id.index()]; }
  // The parts of a layer, kv heads ascending. Requires layer < layers().
  std::span<const CachePart> parts(std::uint64_t layer) const {
    KV_CHECK(layer < layers_);
    return std::span(parts_).subspan(first_part_[layer],
                                     first_part_[layer + 1] - first_part_[layer]);
  }
  std::span<const CachePart> all_parts() const { return parts_; }
  // Whether every position is kept, in one group: no policy at work drops any.
  bool KeepsAll() const { return groups_.size() == 1 && groups_[0].retention.KeepsAll(); }
  // One more than the highest layer of which something is not stored (store=none): it takes all
  // that lies below, for all positions, to compute it again, so nothing of these layers is stored.
  std::uint32_t replayed_layers() const { return replayed_layers_; }
  // Whether every part sees a window only, so that a text may go on without end.
  bool IsEndless() const;

  // One block of every group.
  std::uint64_t block_bytes() const { return block_bytes_; }
  // What is kept of one position while it is, without full-precision tails, which are as long
  // however long the text is; rounded down.
  std::uint64_t bytes_per_token() const { return kept_block_bytes_ / block_tokens_; }
  std::uint64_t layer_bytes_per_token() const { return bytes_per_token() / layers_; }
  // Bytes held for a sequence of this length once the blocks that no query can see are freed.
  std::uint64_t HeldBytes(std::uint64_t length) const;
  // Most bytes held by a sequence on its way to this length, in steps of at most `step` positions.
  std::uint64_t PeakBytes(std::uint64_t length, std::uint64_t step) const;

  // Where the K, V or latent rows of a layer with one part start.
  std::uint64_t k_offset(std::uint64_t layer) const { return OnlyPart(layer, false).k_offset; }
  std::uint64_t v_offset(std::uint64_t layer) const { return OnlyPart(layer, false).v_offset; }
  std::uint64_t latent_offset(std::uint64_t layer) const {
    return OnlyPart(layer, true).row_offset;
  }

  // Blocks that hold this many positions: the quotient rounded up; never overflows.
  std::uint64_t BlocksFor(std::uint64_t tokens) const {
    return tokens / block_tokens_ + (tokens % block_tokens_ != 0 ? 1 : 0);
  }

  friend bool operator==(const CacheGeometry&, const CacheGeometry&) = default;

 private:
  friend class CacheLayoutBuilder;  // cache_geometry.cc

  CacheGeometry() = default;
  const CachePart& OnlyPart(std::uint64_t layer, bool latent) const {
    KV_CHECK(latent ? is_latent() : !is_latent());
    KV_CHECK(parts(layer).size() == 1);
    return parts(layer)[0];
  }

  std::uint32_t layers_ = 0;
  std::uint32_t kv_heads_ = 0;
  std::uint32_t head_dim_ = 0;
  std::uint32_t block_tokens_ = 0;
  std::uint32_t latent_dim_ = 0;
  std::uint32_t rope_dim_ = 0;
  std::uint32_t hidden_dim_ = 0;
  std::uint32_t replayed_layers_ = 0;
  std::uint64_t block_bytes_ = 0;
  std::uint64_t kept_block_bytes_ = 0;  // Of these, of groups that are no tails.
  std::vector<CacheGroup> groups_;       // By id.
  std::vector<CachePart> parts_;         // By layer, then kv head.
  std::vector<std::size_t> first_part_;  // [layers + 1]: of a layer in parts_
};

// The smallest block that holds whole groups of keys under this policy: 16, or the largest group.
std::uint64_t BlockStep(const CachePolicy& policy);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_CACHE_GEOMETRY_H_
