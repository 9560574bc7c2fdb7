#include "kvcache/policy_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace kvasir::kvcache {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using kernels::KvType;

constexpr std::string_view kSettingNames[kPolicySettings] = {"k",      "v",     "group", "rotate",
                                                             "window", "sinks", "store"};
constexpr std::pair<std::string_view, KvType> kTypes[] = {{"f32", KvType::kF32},
                                                          {"f16", KvType::kF16},
                                                          {"bf16", KvType::kBf16},
                                                          {"int8", KvType::kInt8},
                                                          {"int4", KvType::kInt4}};
constexpr std::string_view kTypesText = "f32, f16, bf16, int8 or int4";
constexpr std::string_view kOptionsText =
    "dtype=T, k=T, v=T, group=G, rotate, window=N, sinks=N, full, store=kv|hidden|none";

std::string Shown(std::string_view piece) {
  constexpr std::size_t kMost = 40;
  std::string out = "'";
  for (const char c : piece.substr(0, kMost)) {
    if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out + (piece.size() > kMost ? "…'" : "'");
}

// A number of at most ten digits.
std::optional<std::uint64_t> Number(std::string_view text) {
  if (text.empty() || text.size() > 10) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

class RuleParser {
 public:
  RuleParser(const PolicyText& text, const PolicyShape& shape) : text_(text), shape_(shape) {
    rule_.layers = {{0, shape.layers - 1}};
    rule_.heads = {{0, std::max<std::uint64_t>(1, shape.kv_heads) - 1}};
  }

  Result<PolicyRule> Run(std::string_view piece) {
    if (piece.empty()) {
      return MakeError(ErrorCode::kUsage, "{} is an empty rule, but a rule has a setting: {}",
                       text_.Quote(piece), kOptionsText);
    }
    if (const std::size_t colon = piece.find(':'); colon != std::string_view::npos) {
      KV_TRY(ParseSelector(piece.substr(0, colon)));
      piece = piece.substr(colon + 1);
    }
    for (std::string_view rest = piece;;) {
      const std::size_t end = rest.find(',');
      KV_TRY(ParseOption(rest.substr(0, end)));
      if (end == std::string_view::npos) return std::move(rule_);
      rest = rest.substr(end + 1);
    }
  }

 private:
  Result<void> ParseSelector(std::string_view piece) {
    const std::size_t dot = piece.find('.');
    KV_TRY(rule_.layers, ParseRanges("layer", piece.substr(0, dot), shape_.layers));
    if (dot == std::string_view::npos) return base::Success();
    const std::string_view heads = piece.substr(dot + 1);
    if (shape_.latent) {
      return MakeError(ErrorCode::kUsage,
                       "head {} is not allowed: the model's latent attention (MLA) keeps one entry "
                       "for all heads",
                       text_.Quote(heads));
    }
    KV_TRY(rule_.heads, ParseRanges("head", heads, shape_.kv_heads));
    return base::Success();
  }

  Result<IndexRanges> ParseRanges(std::string_view what, std::string_view piece,
                                  std::uint64_t count) const {
    IndexRanges ranges;
    for (std::string_view rest = piece;;) {
      const std::size_t plus = rest.find('+');
      const std::string_view part = rest.substr(0, plus);
      const std::size_t dash = part.find('-');
      KV_TRY(const std::uint64_t first, ParseIndex(what, part.substr(0, dash), count));
      std::uint64_t last = first;
      if (dash != std::string_view::npos) {
        KV_TRY(last, ParseIndex(what, part.substr(dash + 1), count));
      }
      if (last < first) {
        return MakeError(ErrorCode::kUsage, "the {}s {} go down, but a range must go up: {}-{}",
                         what, text_.Quote(part), last, first);
      }
      ranges.emplace_back(first, last);
      if (plus == std::string_view::npos) return ranges;
      rest = rest.substr(plus + 1);
    }
  }

  Result<std::uint64_t> ParseIndex(std::string_view what, std::string_view piece,
                                   std::uint64_t count) const {
    const auto number = Number(piece);
    if (number && *number < count) return *number;
    return MakeError(
        ErrorCode::kUsage, "{} {} is not allowed: the model has {}", what, text_.Quote(piece),
        count == 1 ? fmt::format("one {}, 0", what) : fmt::format("{}s 0 to {}", what, count - 1));
  }

  // Notes where the rule names a setting; refuses a second time.
  Result<void> Mark(PolicySetting setting, std::string_view option) {
    std::string_view& at = rule_.at[setting];
    if (!at.empty()) {
      return MakeError(ErrorCode::kUsage, "{} sets {} a second time in one rule: {} sets it, too",
                       text_.Quote(option), kSettingNames[static_cast<std::size_t>(setting)],
                       text_.Quote(at));
    }
    at = option;
    return base::Success();
  }

  Result<void> ParseOption(std::string_view option) {
    const std::size_t equals = option.find('=');
    const std::string_view name = option.substr(0, equals);
    const bool has_value = equals != std::string_view::npos;
    const std::string_view value = has_value ? option.substr(equals + 1) : "";
    if (name == "full" || name == "rotate") {
      if (has_value) {
        return MakeError(ErrorCode::kUsage, "{} is not allowed: {} takes no value",
                         text_.Quote(option), name);
      }
      return ParseWord(name, option);
    }
    if (name == "dtype" || name == "k" || name == "v") return ParseType(name, option, value);
    if (name == "group" || name == "window" || name == "sinks") {
      return ParseNumber(name, option, value);
    }
    if (name == "store") return ParseStore(option, value);
    return MakeError(ErrorCode::kUsage, "{} is not a setting; allowed are {}", text_.Quote(option),
                     kOptionsText);
  }

  Result<void> ParseWord(std::string_view name, std::string_view option) {
    if (name == "rotate") {
      rule_.says.rotate = true;
      return Mark(PolicySetting::kRotate, option);
    }
    if (!rule_.full.empty()) {
      return MakeError(ErrorCode::kUsage, "{} stands in the rule a second time",
                       text_.Quote(option));
    }
    rule_.full = option;
    return base::Success();
  }

  base::Error BadValue(std::string_view name, std::string_view option, std::string_view value,
                       std::string_view allowed) const {
    return MakeError(ErrorCode::kUsage, "{} is {} in {}, but must be {}", name, Shown(value),
                     text_.Quote(option), allowed);
  }

  Result<void> ParseType(std::string_view name, std::string_view option, std::string_view value) {
    const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const auto& known) { return known.first == value; });
    if (type == std::end(kTypes)) return BadValue(name, option, value, kTypesText);
    if (name != "v") {
      rule_.says.k = type->second;
      KV_TRY(Mark(PolicySetting::kK, option));
    }
    if (name == "k") return base::Success();
    rule_.says.v = type->second;
    return Mark(PolicySetting::kV, option);
  }

  Result<void> ParseStore(std::string_view option, std::string_view value) {
    for (const KvStore store : {KvStore::kKv, KvStore::kHidden, KvStore::kNone}) {
      if (value != KvStoreName(store)) continue;
      rule_.says.store = store;
      return Mark(PolicySetting::kStore, option);
    }
    return BadValue("store", option, value, "kv, hidden or none");
  }

  Result<void> ParseNumber(std::string_view name, std::string_view option, std::string_view value) {
    const auto number = Number(value);
    if (name == "group") {
      const bool known = number && std::find(std::begin(kKeyGroups), std::end(kKeyGroups),
                                             *number) != std::end(kKeyGroups);
      if (!known) return BadValue(name, option, value, "16, 32, 64, 128 or 256");
      rule_.says.group = static_cast<std::uint32_t>(*number);
      return Mark(PolicySetting::kGroup, option);
    }
    const bool window = name == "window";
    const std::uint64_t least = window ? 1 : 0;
    const std::uint64_t most = window ? kMaxWindow : kMaxSinks;
    if (!number || *number < least || *number > most) {
      return BadValue(name, option, value, fmt::format("a number from {} to {}", least, most));
    }
    (window ? rule_.says.window : rule_.says.sinks) = *number;
    return Mark(window ? PolicySetting::kWindow : PolicySetting::kSinks, option);
  }

  const PolicyText& text_;
  const PolicyShape& shape_;
  PolicyRule rule_;
};

}  // namespace

std::string PolicyText::Quote(std::string_view piece) const {
  const std::string_view before = spec.substr(0, piece.data() - spec.data());
  return fmt::format("{} at character {} (rule {})", Shown(piece), before.size() + 1,
                     std::count(before.begin(), before.end(), ';') + 1);
}

Result<PolicyRule> ParsePolicyRule(const PolicyText& text, std::string_view piece,
                                   const PolicyShape& shape) {
  return RuleParser(text, shape).Run(piece);
}

}  // namespace kvasir::kvcache
