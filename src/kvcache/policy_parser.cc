#include "kvcache/policy_parser.h"

#include <algorithm>
#include <span>
#include <utility>

#include "kvcache/policy_matrix.h"
#include "kvcache/policy_rule.h"

namespace kvasir::kvcache {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using kernels::KvType;

// One head, and which pieces of the text made it so.
struct Head {
  HeadPolicy policy;
  SettingPlaces at;
};

// The piece of the text that gave a head this feature.
std::string_view Source(const Head& head, PolicyFeature feature) {
  switch (feature) {
    case PolicyFeature::kWindow:
      return head.at[PolicySetting::kWindow];
    case PolicyFeature::kSinks:
      return head.at[PolicySetting::kSinks];
    case PolicyFeature::kKeyGroup:
      return head.at[PolicySetting::kGroup];
    case PolicyFeature::kRotate:
      return head.at[PolicySetting::kRotate];
    case PolicyFeature::kHidden:
    case PolicyFeature::kNone:
    case PolicyFeature::kSomeHeads:
      return head.at[PolicySetting::kStore];
    case PolicyFeature::kHalf:
    case PolicyFeature::kInt8:
    case PolicyFeature::kInt4:
      break;
  }
  const bool keys = (FeaturesOf({.k = head.policy.k}) & Only(feature)) != 0;
  return head.at[keys ? PolicySetting::kK : PolicySetting::kV];
}

class Parser {
 public:
  Parser(std::string_view spec, const PolicyShape& shape)
      : text_{spec},
        shape_(shape),
        entries_(std::max<std::uint64_t>(1, shape.kv_heads)),
        heads_(shape.layers * entries_) {}

  Result<std::vector<HeadPolicy>> Run() {
    for (std::string_view rest = text_.spec;;) {
      const std::size_t end = rest.find(';');
      KV_TRY(const PolicyRule rule, ParsePolicyRule(text_, rest.substr(0, end), shape_));
      KV_TRY(CheckRule(rule));
      KV_TRY(Apply(rule));
      if (end == std::string_view::npos) break;
      rest = rest.substr(end + 1);
    }
    for (std::uint64_t layer = 0; layer < shape_.layers; ++layer) {
      KV_TRY(CheckLayer(layer));
    }
    std::vector<HeadPolicy> policies;
    policies.reserve(heads_.size());
    for (const Head& head : heads_) policies.push_back(head.policy);
    return policies;
  }

 private:
  // Contradictions within a rule, whatever other rules say.
  Result<void> CheckRule(const PolicyRule& rule) const {
    for (const PolicySetting setting : {PolicySetting::kWindow, PolicySetting::kSinks}) {
      if (rule.full.empty() || !rule.Names(setting)) continue;
      return MakeError(ErrorCode::kUsage, "{} contradicts {}: a rule may have one of the two",
                       text_.Quote(rule.at[setting]), text_.Quote(rule.full));
    }
    if (rule.Names(PolicySetting::kGroup) && rule.Names(PolicySetting::kK) &&
        rule.says.k != KvType::kInt4) {
      return GroupError(rule.at[PolicySetting::kGroup], rule.says.k);
    }
    Head alone = {.policy = rule.says, .at = rule.at};
    if (alone.policy.group != 0) alone.policy.k = KvType::kInt4Channel;
    return CheckHead(alone);
  }

  base::Error GroupError(std::string_view at, KvType k) const {
    return MakeError(ErrorCode::kUsage, "{} is allowed with k=int4 only, but k is {}",
                     text_.Quote(at), kernels::KvTypeName(k));
  }

  Result<void> Apply(const PolicyRule& rule) {
    for (const auto& layers : rule.layers) {
      for (std::uint64_t layer = layers.first; layer <= layers.second; ++layer) {
        for (const auto& heads : rule.heads) {
          for (std::uint64_t head = heads.first; head <= heads.second; ++head) {
            KV_TRY(Apply(rule, heads_[layer * entries_ + head]));
          }
        }
      }
    }
    return base::Success();
  }

  Result<void> Apply(const PolicyRule& rule, Head& head) const {
    HeadPolicy& policy = head.policy;
    const auto take = [&](PolicySetting setting, auto& value, const auto& said) {
      if (!rule.Names(setting)) return;
      value = said;
      head.at[setting] = rule.at[setting];
    };
    if (!rule.full.empty()) policy.window = policy.sinks = 0;
    take(PolicySetting::kWindow, policy.window, rule.says.window);
    take(PolicySetting::kSinks, policy.sinks, rule.says.sinks);
    take(PolicySetting::kStore, policy.store, rule.says.store);
    if (rule.Names(PolicySetting::kStore) && policy.store != KvStore::kKv) {
      policy = {.window = policy.window, .sinks = policy.sinks, .store = policy.store};
    }
    if (rule.Names(PolicySetting::kK)) policy.group = 0;
    take(PolicySetting::kK, policy.k, rule.says.k);
    take(PolicySetting::kV, policy.v, rule.says.v);
    take(PolicySetting::kRotate, policy.rotate, true);
    if (!rule.Names(PolicySetting::kGroup)) return base::Success();
    if (policy.k != KvType::kInt4 && policy.k != KvType::kInt4Channel) {
      return GroupError(rule.at[PolicySetting::kGroup], policy.k);
    }
    policy.k = KvType::kInt4Channel;
    take(PolicySetting::kGroup, policy.group, rule.says.group);
    return base::Success();
  }

  // What a head's settings say against each other or against the model.
  Result<void> CheckHead(const Head& head) const {
    const PolicyFeatureSet features = FeaturesOf(head.policy);
    if (shape_.latent && features != 0) return LatentError(head, features);
    if (head.policy.window != 0 && head.policy.sinks > head.policy.window) {
      return MakeError(ErrorCode::kUsage, "{} is more than {} allows: at most {}",
                       text_.Quote(head.at[PolicySetting::kSinks]),
                       text_.Quote(head.at[PolicySetting::kWindow]), head.policy.window);
    }
    const PolicyPair* pair = FirstConflict(features, shape_.rotary);
    if (pair == nullptr) return base::Success();
    std::string_view first = Source(head, pair->first);
    std::string_view second = Source(head, pair->second);
    if (first.data() > second.data()) std::swap(first, second);
    return MakeError(
        ErrorCode::kUsage, "{} does not go with {}{}: {}", text_.Quote(second), text_.Quote(first),
        pair->verdict == PolicyVerdict::kLearnedOnly ? " in a model with rotary positions" : "",
        pair->text);
  }

  base::Error LatentError(const Head& head, PolicyFeatureSet features) const {
    std::size_t feature = 0;
    while ((features & Only(PolicyFeature(feature))) == 0) ++feature;
    return MakeError(ErrorCode::kUsage,
                     "{} is not allowed: the model's latent attention (MLA) keeps one entry for "
                     "all heads, always full and f32",
                     text_.Quote(Source(head, PolicyFeature(feature))));
  }

  // The end result of all rules.
  Result<void> CheckLayer(std::uint64_t layer) const {
    const std::span<const Head> heads = std::span(heads_).subspan(layer * entries_, entries_);
    for (const Head& head : heads) {
      if (head.policy.sinks != 0 && head.policy.window == 0) {
        return MakeError(ErrorCode::kUsage, "{} needs a window, but there is none: add window=N",
                         text_.Quote(head.at[PolicySetting::kSinks]));
      }
      KV_TRY(CheckHead(head));
    }
    const auto hidden = std::find_if(heads.begin(), heads.end(), [](const Head& head) {
      return head.policy.store == KvStore::kHidden;
    });
    if (hidden == heads.end()) return base::Success();
    for (std::uint64_t i = 0; i < entries_; ++i) {
      if (heads[i].policy == hidden->policy) continue;
      return MakeError(ErrorCode::kUsage, "{} is for head {} of layer {}, but head {} is '{}': {}",
                       text_.Quote(hidden->at[PolicySetting::kStore]), hidden - heads.begin(),
                       layer, i, PolicyOptions(heads[i].policy),
                       PolicyPairOf(PolicyFeature::kHidden, PolicyFeature::kSomeHeads).text);
    }
    return base::Success();
  }

  const PolicyText text_;
  const PolicyShape& shape_;
  const std::uint64_t entries_;
  std::vector<Head> heads_;  // [layers][entries]
};

}  // namespace

Result<std::vector<HeadPolicy>> ParseHeadPolicies(std::string_view spec, const PolicyShape& shape) {
  KV_CHECK(shape.layers >= 1);
  if (spec.empty()) {
    return MakeError(ErrorCode::kUsage,
                     "the cache policy is empty, but must be rules such as dtype=f16 or "
                     "2-3:window=64,sinks=4");
  }
  if (spec.size() > kMaxPolicyChars) {
    return MakeError(ErrorCode::kUsage,
                     "the cache policy has {} characters, but at most {} are allowed", spec.size(),
                     kMaxPolicyChars);
  }
  return Parser(spec, shape).Run();
}

}  // namespace kvasir::kvcache
