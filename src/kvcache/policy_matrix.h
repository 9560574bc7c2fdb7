// Which settings of --kv go together: one table, which the parser asks and which
// docs/kvcache/matrix.md is written from.
#ifndef KVASIR_KVCACHE_POLICY_MATRIX_H_
#define KVASIR_KVCACHE_POLICY_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kvcache/cache_policy.h"

namespace kvasir::kvcache {

// What a head's policy can have beyond "full, f32, K and V kept". kSomeHeads is a layer's: that its
// heads do not all have the same policy.
enum class PolicyFeature : std::uint8_t {
  kWindow,
  kSinks,
  kHalf,
  kInt8,
  kInt4,
  kKeyGroup,
  kRotate,
  kHidden,
  kNone,
  kSomeHeads,
};
inline constexpr std::size_t kPolicyFeatures = 10;
std::string_view PolicyFeatureName(PolicyFeature feature);  // As in --kv: "window=N".

enum class PolicyVerdict : std::uint8_t {
  kAllowed,
  kLearnedOnly,  // Not with rotary positions.
  kRefused,
};

struct PolicyPair {
  PolicyFeature first;
  PolicyFeature second;  // After first.
  PolicyVerdict verdict;
  std::string_view text;  // What the two mean together, or why they do not go together.
};

// The verdict on two different features; the order does not matter. More than two go together if
// every two do, and with latent attention none does.
const PolicyPair& PolicyPairOf(PolicyFeature a, PolicyFeature b);

// A set of features: bit f is feature f.
using PolicyFeatureSet = std::uint32_t;
constexpr PolicyFeatureSet Only(PolicyFeature feature) {
  return PolicyFeatureSet{1} << static_cast<unsigned>(feature);
}
// Those that a head's policy itself shows: all but kSomeHeads.
PolicyFeatureSet FeaturesOf(const HeadPolicy& policy);

// The first pair of the set that is refused in a model of this shape, or null.
const PolicyPair* FirstConflict(PolicyFeatureSet features, bool rotary);

// docs/kvcache/matrix.md.
std::string PolicyMatrixPage();

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_POLICY_MATRIX_H_
