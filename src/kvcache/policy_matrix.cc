#include "kvcache/policy_matrix.h"

#include <fmt/format.h>

#include <bit>
#include <initializer_list>
#include <utility>

namespace kvasir::kvcache {
namespace {

using enum PolicyFeature;
using enum PolicyVerdict;

struct FeatureText {
  PolicyFeature feature;
  std::string_view name;
  std::string_view alone;
};

constexpr FeatureText kFeatures[kPolicyFeatures] = {
    {kWindow, "window=N", "A query sees the last N positions, its own included; N is 1 or more."},
    {kSinks, "sinks=N",
     "A query sees the first N positions, too. Needs a window, and at most as many sinks."},
    {kHalf, "f16, bf16", "K, V or both rounded to 16 bits."},
    {kInt8, "int8", "K, V or both in 8 bits, with one scale a token and head."},
    {kInt4, "int4", "K, V or both in 4 bits, with a scale and a minimum a token and head."},
    {kKeyGroup, "k=int4,group=G",
     "K in 4 bits, with a scale and a minimum a channel and group of G positions; G is 16, 32, "
     "64, 128 or 256."},
    {kRotate, "rotate", "q, K and V are turned by a Hadamard matrix before K and V are rounded."},
    {kHidden, "store=hidden", "The layer's normed input in f32 instead of K and V."},
    {kNone, "store=none", "Nothing is kept: K and V are computed from the tokens again."},
    {kSomeHeads, "some heads", "A rule for some kv heads of a layer."},
};

constexpr std::string_view kOneEach = "One is for K, the other for V.";
constexpr std::string_view kHiddenIsF32 =
    "store=hidden keeps the layer's input in f32, so that K and V are rebuilt exactly";
constexpr std::string_view kNoneIsF32 =
    "store=none keeps nothing that could be rounded: K and V are computed in f32 each time";

constexpr PolicyPair kPairs[] = {
    {kWindow, kSinks, kAllowed,
     "Sinks stay when the window has left them. With rotary positions a sink is read as if it "
     "stood just before the window."},
    {kWindow, kHalf, kAllowed, "The window's K and V are rounded."},
    {kWindow, kInt8, kAllowed, "The window's K and V are rounded."},
    {kWindow, kInt4, kAllowed, "The window's K and V are rounded."},
    {kWindow, kKeyGroup, kAllowed,
     "Groups start at multiples of G, wherever the window stands; a group is freed when the window "
     "has left its blocks."},
    {kWindow, kRotate, kAllowed, "The window's q, K and V are rotated."},
    {kWindow, kHidden, kAllowed,
     "K and V of the window are rebuilt; the inputs of older positions are freed."},
    {kWindow, kNone, kAllowed, "The window says what is seen; nothing was kept anyway."},
    {kWindow, kSomeHeads, kAllowed, "Each head has its own window, and frees its own blocks."},
    {kSinks, kHalf, kAllowed, "Sinks are rounded like the rest."},
    {kSinks, kInt8, kAllowed, "Sinks are rounded like the rest."},
    {kSinks, kInt4, kAllowed, "Sinks are rounded like the rest."},
    {kSinks, kKeyGroup, kLearnedOnly,
     "a rotary sink is kept unrotated beside keys that are rotated, and one scale a channel cannot "
     "serve both"},
    {kSinks, kRotate, kAllowed,
     "Sinks are rotated like the rest; with rotary positions when they are read."},
    {kSinks, kHidden, kLearnedOnly,
     "a rotary sink is turned to a new place for every query, but what is rebuilt has one place"},
    {kSinks, kNone, kLearnedOnly,
     "a rotary sink is turned to a new place for every query, but what is computed has one place"},
    {kSinks, kSomeHeads, kAllowed, "Each head has its own sinks."},
    {kHalf, kInt8, kAllowed, kOneEach},
    {kHalf, kInt4, kAllowed, kOneEach},
    {kHalf, kKeyGroup, kAllowed, "V is rounded to 16 bits."},
    {kHalf, kRotate, kAllowed, "What is rotated is rounded."},
    {kHalf, kHidden, kRefused, kHiddenIsF32},
    {kHalf, kNone, kRefused, kNoneIsF32},
    {kHalf, kSomeHeads, kAllowed, "Each head has its own types."},
    {kInt8, kInt4, kAllowed, kOneEach},
    {kInt8, kKeyGroup, kAllowed, "V is rounded to 8 bits."},
    {kInt8, kRotate, kAllowed, "What is rotated is rounded, which spreads outliers over the head."},
    {kInt8, kHidden, kRefused, kHiddenIsF32},
    {kInt8, kNone, kRefused, kNoneIsF32},
    {kInt8, kSomeHeads, kAllowed, "Each head has its own types."},
    {kInt4, kKeyGroup, kAllowed, "V is rounded to 4 bits, with a scale and a minimum a token."},
    {kInt4, kRotate, kAllowed, "What is rotated is rounded, which spreads outliers over the head."},
    {kInt4, kHidden, kRefused, kHiddenIsF32},
    {kInt4, kNone, kRefused, kNoneIsF32},
    {kInt4, kSomeHeads, kAllowed, "Each head has its own types."},
    {kKeyGroup, kRotate, kAllowed,
     "Channels are rounded after the rotation, which mixes them: rarely of use."},
    {kKeyGroup, kHidden, kRefused, kHiddenIsF32},
    {kKeyGroup, kNone, kRefused, kNoneIsF32},
    {kKeyGroup, kSomeHeads, kAllowed, "Each head has its own groups."},
    {kRotate, kHidden, kRefused, kHiddenIsF32},
    {kRotate, kNone, kRefused, kNoneIsF32},
    {kRotate, kSomeHeads, kAllowed, "A head that is rotated changes no other."},
    {kHidden, kNone, kRefused, "a head keeps one or the other"},
    {kHidden, kSomeHeads, kRefused,
     "the layer's input serves all of its kv heads, so they all have the same policy"},
    {kNone, kSomeHeads, kAllowed,
     "The layer's input is computed again for these heads, so its other heads need nothing "
     "either."},
};
static_assert(std::size(kPairs) == kPolicyFeatures * (kPolicyFeatures - 1) / 2);

constexpr std::size_t PairIndex(PolicyFeature a, PolicyFeature b) {
  const auto low = static_cast<std::size_t>(a < b ? a : b);
  const auto high = static_cast<std::size_t>(a < b ? b : a);
  return low * (2 * kPolicyFeatures - low - 1) / 2 + high - low - 1;
}

constexpr bool PairsAreInOrder() {
  for (std::size_t i = 0; i < std::size(kPairs); ++i) {
    if (kPairs[i].first >= kPairs[i].second) return false;
    if (PairIndex(kPairs[i].first, kPairs[i].second) != i) return false;
  }
  return true;
}
static_assert(PairsAreInOrder());

PolicyFeatureSet TypeFeature(kernels::KvType type) {
  switch (type) {
    case kernels::KvType::kF32:
      return 0;
    case kernels::KvType::kF16:
    case kernels::KvType::kBf16:
      return Only(kHalf);
    case kernels::KvType::kInt8:
      return Only(kInt8);
    case kernels::KvType::kInt4:
      return Only(kInt4);
    case kernels::KvType::kInt4Channel:
      return Only(kKeyGroup);
  }
  return 0;
}

std::string_view VerdictWord(PolicyVerdict verdict) {
  switch (verdict) {
    case kAllowed:
      return "yes";
    case kLearnedOnly:
      return "learned";
    case kRefused:
      return "no";
  }
  return "?";
}

}  // namespace

std::string_view PolicyFeatureName(PolicyFeature feature) {
  return kFeatures[static_cast<std::size_t>(feature)].name;
}

const PolicyPair& PolicyPairOf(PolicyFeature a, PolicyFeature b) {
  KV_CHECK(a != b);
  return kPairs[PairIndex(a, b)];
}

PolicyFeatureSet FeaturesOf(const HeadPolicy& policy) {
  PolicyFeatureSet features = TypeFeature(policy.k) | TypeFeature(policy.v);
  if (policy.window != 0) features |= Only(kWindow);
  if (policy.sinks != 0) features |= Only(kSinks);
  if (policy.rotate) features |= Only(kRotate);
  if (policy.store == KvStore::kHidden) features |= Only(kHidden);
  if (policy.store == KvStore::kNone) features |= Only(kNone);
  return features;
}

const PolicyPair* FirstConflict(PolicyFeatureSet features, bool rotary) {
  if (std::has_single_bit(features) || features == 0) return nullptr;
  for (const PolicyPair& pair : kPairs) {
    const PolicyFeatureSet both = Only(pair.first) | Only(pair.second);
    if ((features & both) != both || pair.verdict == kAllowed) continue;
    if (pair.verdict == kRefused || rotary) return &pair;
  }
  return nullptr;
}

std::string PolicyMatrixPage() {
  std::string page =
      "# Which settings go together\n\n"
      "Written from the table that the parser of `--kv` uses (`src/kvcache/policy_matrix.cc`); a "
      "test\ncompares the two. What each setting is: the [pages of policies](README.md).\n\n"
      "**yes**: allowed; **learned**: allowed in models with learned positions, refused with "
      "rotary ones\n(RoPE); **no**: refused. Of three and more settings every two must go "
      "together. Models with latent\nattention (MLA: DeepSeek) keep one entry for all heads, which "
      "is always full and f32: they refuse\nevery setting below.\n\n|  |";
  for (const FeatureText& column : kFeatures) page += fmt::format(" {} |", column.name);
  page += "\n|---|";
  for (std::size_t i = 0; i < kPolicyFeatures; ++i) page += "---|";
  for (const FeatureText& row : kFeatures) {
    page += fmt::format("\n| **{}** |", row.name);
    for (const FeatureText& column : kFeatures) {
      page += fmt::format(" {} |",
                          row.feature == column.feature
                              ? "–"
                              : VerdictWord(PolicyPairOf(row.feature, column.feature).verdict));
    }
  }
  page += "\n\n## Each alone\n\n| setting | what it says |\n|---|---|\n";
  for (const FeatureText& row : kFeatures) {
    page += fmt::format("| {} | {} |\n", row.name, row.alone);
  }
  page += "\n## What two mean together\n\n| settings | meaning |\n|---|---|\n";
  for (const PolicyPair& pair : kPairs) {
    if (pair.verdict != kAllowed) continue;
    page += fmt::format("| {} with {} | {} |\n", PolicyFeatureName(pair.first),
                        PolicyFeatureName(pair.second), pair.text);
  }
  page += "\n## What is refused, and why\n\n| settings | refused | because |\n|---|---|---|\n";
  for (const PolicyPair& pair : kPairs) {
    if (pair.verdict == kAllowed) continue;
    page += fmt::format("| {} with {} | {} | {} |\n", PolicyFeatureName(pair.first),
                        PolicyFeatureName(pair.second),
                        pair.verdict == kRefused ? "always" : "with rotary positions", pair.text);
  }
  page +=
      "\nAlso refused: sinks without a window, more sinks than the window, more than 256 sinks, a "
      "window\nof 0, a group of another size, `group` without `k=int4`, a layer or head that the "
      "model lacks, a\nsetting twice in one rule, `full` beside a window or sinks in one rule. An "
      "error names the setting,\nits value, what is allowed, the character and the rule.\n";
  return page;
}

}  // namespace kvasir::kvcache
