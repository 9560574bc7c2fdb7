#include "model/known_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "formats/printable.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;
using formats::GgufValue;
using Names = std::span<const std::string_view>;

// What the readers read, without the architecture in front.
constexpr std::string_view kReadByAll[] = {
    "attention.head_count", "attention.head_count_kv", "block_count", "context_length",
    "embedding_length",     "feed_forward_length",     "vocab_size"};
constexpr std::string_view kReadForGpt2[] = {"attention.layer_norm_epsilon"};
constexpr std::string_view kReadForRope[] = {"rope.dimension_count",
                                             "rope.freq_base",
                                             "rope.scale_linear",
                                             "rope.scaling.attn_factor",
                                             "rope.scaling.factor",
                                             "rope.scaling.high_freq_factor",
                                             "rope.scaling.low_freq_factor",
                                             "rope.scaling.original_context_length",
                                             "rope.scaling.type"};
constexpr std::string_view kReadForLlama[] = {
    "attention.key_length",     "attention.layer_norm_rms_epsilon",
    "attention.sliding_window", "attention.sliding_window_pattern",
    "attention.value_length",   "expert_count"};
constexpr std::string_view kReadForDeepseek[] = {
    "attention.key_length",       "attention.key_length_mla",
    "attention.kv_lora_rank",     "attention.layer_norm_rms_epsilon",
    "attention.q_lora_rank",      "attention.value_length",
    "attention.value_length_mla", "expert_count",
    "expert_shared_count",        "leading_dense_block_count",
    "nextn_predict_layers",       "rope.scaling.yarn_log_multiplier"};

// Published files hold them, and nothing that is computed here depends on them. Those of experts
// say how layers of experts work; a model that has any is refused by their count.
constexpr std::string_view kHarmless[] = {
    "expert_feed_forward_length",  // Of layers that are refused, as the next four.
    "expert_gating_func",
    "expert_used_count",
    "expert_weights_norm",
    "expert_weights_scale",
    "pooling_type",            // How rows become one embedding; here each row becomes logits.
    "rope.scaling.finetuned",  // How the model came to its context.
    "tensor_data_layout"};     // Of the file the weights came from.

// What would change the answer, and the value at which it does not.
struct Neutral {
  std::string_view name;
  double value;  // For a bool 0 or 1.
  bool is_bool = false;
};
constexpr Neutral kNeutral[] = {
    {"attention.causal", 1, true},     {"attention.clamp_kqv", 0}, {"attention.max_alibi_bias", 0},
    {"attn_logit_softcapping", 0},     {"embedding_scale", 1},     {"expert_count", 0},
    {"final_logit_softcapping", 0},    {"logit_scale", 1},         {"residual_scale", 1},
    {"use_parallel_residual", 0, true}};

bool Holds(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsRead(std::string_view architecture, std::string_view name) {
  if (Holds(kReadByAll, name)) return true;
  if (architecture == "gpt2") return Holds(kReadForGpt2, name);
  if (Holds(kReadForRope, name)) return true;
  return Holds(architecture == "deepseek2" ? Names(kReadForDeepseek) : Names(kReadForLlama), name);
}

bool IsNeutral(const Neutral& neutral, const GgufValue& value) {
  if (const auto flag = value.AsBool()) return neutral.is_bool && *flag == (neutral.value != 0);
  if (neutral.is_bool) return false;
  if (const auto number = value.AsFloat()) return *number == neutral.value;
  const auto number = value.AsInt();
  return number && static_cast<double>(*number) == neutral.value;
}

base::Result<void> RefuseUnlessNeutral(const formats::GgufEntry& entry, std::string_view name) {
  const auto* const neutral = std::find_if(std::begin(kNeutral), std::end(kNeutral),
                                           [&](const Neutral& n) { return n.name == name; });
  if (neutral == std::end(kNeutral)) {
    return MakeError(ErrorCode::kBadData,
                     "metadata {} is {}, a setting of this architecture that is not supported; it "
                     "could change the answer",
                     formats::Quoted(entry.key), entry.value.ValueText());
  }
  if (IsNeutral(*neutral, entry.value)) return base::Success();
  const std::string allowed =
      neutral->is_bool ? fmt::format("{}", neutral->value != 0) : fmt::format("{}", neutral->value);
  return MakeError(ErrorCode::kBadData, "metadata {} is {}; only {} is supported",
                   formats::Quoted(entry.key), entry.value.ValueText(), allowed);
}

}  // namespace

base::Result<void> RefuseOtherKeys(const formats::GgufMetadata& metadata,
                                   std::string_view architecture, std::uint64_t vocab) {
  const std::string prefix = fmt::format("{}.", architecture);
  for (const formats::GgufEntry& entry : metadata.entries()) {
    if (!entry.key.starts_with(prefix)) continue;
    const std::string_view name = entry.key.substr(prefix.size());
    if (IsRead(architecture, name) || Holds(kHarmless, name)) continue;
    KV_TRY(RefuseUnlessNeutral(entry, name));
  }
  const std::string size_key = prefix + "vocab_size";
  KV_TRY(const auto size, metadata.OptionalUint(size_key));
  if (size && *size != vocab) {
    return MakeError(ErrorCode::kBadData, "{} is {}; the vocabulary has {} tokens", size_key, *size,
                     vocab);
  }
  return base::Success();
}

}  // namespace kvasir::model
