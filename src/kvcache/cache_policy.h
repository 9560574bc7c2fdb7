// What is kept of every layer and kv head, and what a query may see of it: the meaning of --kv.
#ifndef KVASIR_KVCACHE_CACHE_POLICY_H_
#define KVASIR_KVCACHE_CACHE_POLICY_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "kernels/kv_type.h"

namespace kvasir::kvcache {

// What a layer or head keeps: K and V; the layer's normed input, from which K and V are rebuilt;
// nothing, K and V are computed from the tokens again. All three compute the same function.
enum class KvStore : std::uint8_t { kKv, kHidden, kNone };
std::string_view KvStoreName(KvStore store);  // kv, hidden, none

// Bounds of the numbers in a policy.
inline constexpr std::uint64_t kMaxWindow = 0xffffffff;
inline constexpr std::uint64_t kMaxSinks = 256;
inline constexpr std::uint32_t kKeyGroups[] = {16, 32, 64, 128, 256};

// The policy of one kv head of one layer. Positions are absolute: neither the block size nor how
// the work is cut up is part of it.
struct HeadPolicy {
  kernels::KvType k = kernels::KvType::kF32;
  kernels::KvType v = kernels::KvType::kF32;  // Never kInt4Channel.
  std::uint32_t group = 0;                    // One of kKeyGroups exactly if k is kInt4Channel.
  bool rotate = false;                        // Hadamard rotation of q, K and V.
  std::uint64_t window = 0;                   // Last positions seen, the query's own too; 0: all.
  std::uint64_t sinks = 0;                    // First positions seen besides; at most window.
  KvStore store = KvStore::kKv;
  friend bool operator==(const HeadPolicy&, const HeadPolicy&) = default;
};

// What a policy must know of a model.
struct PolicyShape {
  std::uint64_t layers = 0;
  std::uint64_t kv_heads = 0;  // 0 in a latent model.
  std::uint64_t head_dim = 0;
  bool rotary = false;  // Positions turn queries and keys (RoPE); else they are learned.
  bool latent = false;  // Multi-head latent attention: one entry for all heads.
};

// A value, immutable but for LimitWindows; thread-compatible. A latent model's layers have one
// entry, number 0.
//
// The language, in which a later rule overrides an earlier one, setting by setting:
//   SPEC   := RULE (';' RULE)*             RULE := [LAYERS ['.' HEADS] ':'] OPT (',' OPT)*
//   LAYERS, HEADS := RANGE ('+' RANGE)*    RANGE := NUMBER ['-' NUMBER]
//   OPT    := dtype=T | k=T | v=T | group=G | rotate | window=N | sinks=N | full
//           | store=kv | store=hidden | store=none
//   T      := f32 | f16 | bf16 | int8 | int4
// dtype is k and v together. group belongs to k=int4: a k without a group takes the group away.
// full takes window and sinks away. store=hidden and store=none take away what earlier rules said
// of how K and V are stored (types, group, rotation). What no rule names is full and f32.
class CachePolicy {
 public:
  // Everything full, in f32.
  static CachePolicy Full(std::uint64_t layers, std::uint64_t kv_heads);

  // kUsage for a text that is no SPEC, a number out of range, a layer or head that the model lacks,
  // or settings that do not go together (policy_matrix.h): names the setting, its value, what is
  // allowed, and the character and rule, both counted from 1.
  static base::Result<CachePolicy> Parse(std::string_view spec, const PolicyShape& shape);

  // From one policy a head, [layers][kv_heads]. Requires heads.size() == layers · max(1, kv_heads),
  // and policies that Parse could return.
  static CachePolicy Of(std::uint64_t layers, std::uint64_t kv_heads,
                        std::vector<HeadPolicy> heads);

  std::uint64_t layers() const { return layers_; }
  std::uint64_t kv_heads() const { return kv_heads_; }  // At least 1.
  const HeadPolicy& At(std::uint64_t layer, std::uint64_t kv_head) const {
    KV_CHECK(layer < layers_ && kv_head < kv_heads_);
    return heads_[layer * kv_heads_ + kv_head];
  }
  // [kv_heads]: one layer's.
  std::span<const HeadPolicy> Layer(std::uint64_t layer) const {
    KV_CHECK(layer < layers_);
    return std::span(heads_).subspan(layer * kv_heads_, kv_heads_);
  }

  // A SPEC that parses back to this policy for a model of this shape. Equal policies give equal
  // text, so it can stand in a fingerprint. "full,dtype=f32" for the full cache.
  std::string Canonical() const;

  bool IsFull() const;
  // Whether the logits are those of the full cache, whatever they cost: all of f32, without windows
  // and rotation. To be asked before LimitWindows.
  bool IsLossless() const;

  // Lays the model's own sliding windows, one a layer (0: none), under the policy's: the narrower
  // one counts. A window of the model that is no wider than the policy's comes without sinks, since
  // the model itself sees none. Requires model_windows.size() == layers().
  void LimitWindows(std::span<const std::uint64_t> model_windows);

  friend bool operator==(const CachePolicy&, const CachePolicy&) = default;

 private:
  CachePolicy(std::uint64_t layers, std::uint64_t kv_heads, std::vector<HeadPolicy> heads)
      : layers_(layers), kv_heads_(kv_heads), heads_(std::move(heads)) {}

  std::uint64_t layers_;
  std::uint64_t kv_heads_;
  std::vector<HeadPolicy> heads_;  // [layers][kv_heads]
};

// The settings of one head as OPTs: "window=64,sinks=4,dtype=int8".
std::string PolicyOptions(const HeadPolicy& policy);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_CACHE_POLICY_H_
