// One rule of the --kv language as it is written: which layers and heads, which settings.
#ifndef KVASIR_KVCACHE_POLICY_RULE_H_
#define KVASIR_KVCACHE_POLICY_RULE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kvcache/cache_policy.h"

namespace kvasir::kvcache {

enum class PolicySetting : std::uint8_t { kK, kV, kGroup, kRotate, kWindow, kSinks, kStore };
inline constexpr std::size_t kPolicySettings = 7;

// Where each setting stands, as a piece of the text; empty: nowhere.
class SettingPlaces {
 public:
  std::string_view& operator[](PolicySetting setting) {
    return pieces_[static_cast<std::size_t>(setting)];
  }
  std::string_view operator[](PolicySetting setting) const {
    return pieces_[static_cast<std::size_t>(setting)];
  }

 private:
  std::array<std::string_view, kPolicySettings> pieces_ = {};
};

// Both ends inside.
using IndexRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

struct PolicyRule {
  IndexRanges layers, heads;  // Within the model; all of it without a selector.
  HeadPolicy says;            // Only settings that have a place count. Of k, int4 per token.
  SettingPlaces at;
  std::string_view full;  // Its place.
  bool Names(PolicySetting setting) const { return !at[setting].empty(); }
};

// A whole SPEC, whose pieces are views into it.
struct PolicyText {
  std::string_view spec;
  // "'k=int8' at character 5 (rule 1)", both counted from 1; the piece shortened and in printable
  // ASCII. Requires a piece of spec.
  std::string Quote(std::string_view piece) const;
};

// The rule that this piece of the text is. kUsage naming the setting, its value, what is allowed,
// and the place, for what is no rule on its own: how settings go together is not looked at, except
// that none may stand twice.
base::Result<PolicyRule> ParsePolicyRule(const PolicyText& text, std::string_view piece,
                                         const PolicyShape& shape);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_POLICY_RULE_H_
