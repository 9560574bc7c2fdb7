#include "kvcache/cache_plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/kv_type.h"
#include "kvcache/cache_policy.h"
#include "kvcache/plan_workload.h"
#include "kvcache/policy_matrix.h"
#include "kvcache/policy_plan.h"

namespace kvasir::kvcache {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::uint64_t kScaleBytes = 2;
constexpr std::uint64_t kMinimumBytes = 2;

// Bytes of `width` numbers that share a scale.
Amount RowBytes(PlanDType dtype, std::uint64_t width) {
  switch (dtype) {
    case PlanDType::kF32:
      return Amount(width) * 4;
    case PlanDType::kF16:
    case PlanDType::kBF16:
      return Amount(width) * 2;
    case PlanDType::kInt8:
      return Amount(width) + kScaleBytes;
    case PlanDType::kInt4:
      return Amount(CeilDiv(width, 2)) + kScaleBytes + kMinimumBytes;
  }
  return 0;
}

// The same for the formula.
std::string RowText(PlanDType dtype, const std::string& width) {
  switch (dtype) {
    case PlanDType::kF32:
      return fmt::format("{} × 4 bytes", width);
    case PlanDType::kF16:
    case PlanDType::kBF16:
      return fmt::format("{} × 2 bytes", width);
    case PlanDType::kInt8:
      return fmt::format("({} bytes + 2 of scale)", width);
    case PlanDType::kInt4:
      return fmt::format("({} ÷ 2 bytes + 4 of scale and minimum)", width);
  }
  return "";
}

// What one layer holds: rows in blocks, and with key_group the keys beside them.
struct LayerFormat {
  Amount row = 0;       // Bytes a position, in blocks.
  Amount group = 0;     // Bytes of a complete group of keys.
  Amount tail = 0;      // Bytes a sequence for the group that is not complete.
  Amount channels = 0;  // Of its keys: f32 numbers of one position.
  Amount token = 0;     // Bytes a position in all, on average.
  std::string formula;
};

LayerFormat FormatOf(const PlanShape& shape, const PlanPolicy& policy) {
  LayerFormat format;
  if (policy.hidden) {
    format.row = format.token = RowBytes(PlanDType::kF32, shape.embedding);
    format.formula = fmt::format("{} layers × {} (the layer's input)", shape.layers,
                                 RowText(PlanDType::kF32, fmt::to_string(shape.embedding)));
    return format;
  }
  const bool latent = shape.latent_dim != 0;
  const Amount width = latent ? Amount(shape.latent_dim) + shape.rope_dim : shape.head_dim;
  const std::string width_text = latent ? fmt::format("({} + {})", shape.latent_dim, shape.rope_dim)
                                        : fmt::to_string(shape.head_dim);
  const std::uint64_t heads = latent ? 1 : shape.kv_heads;
  const std::string heads_text = latent ? "" : fmt::format("{} kv heads × ", heads);
  const auto row = [&](PlanDType dtype) {
    return width.value() ? Amount(heads) * RowBytes(dtype, *width.value()) : width;
  };
  const auto row_text = [&](PlanDType dtype) { return heads_text + RowText(dtype, width_text); };
  const PlanDType value_dtype = policy.value_dtype.value_or(policy.dtype);
  if (policy.key_group == 0) {
    format.row = format.token = latent ? row(policy.dtype) : row(policy.dtype) + row(value_dtype);
    format.formula = value_dtype != policy.dtype
                         ? fmt::format("{} layers × ({} of K + {} of V)", shape.layers,
                                       row_text(policy.dtype), row_text(value_dtype))
                         : fmt::format("{}{} layers × {}", latent ? "" : "2 (K and V) × ",
                                       shape.layers, row_text(policy.dtype));
    return format;
  }
  format.channels = Amount(heads) * width;
  format.group = format.channels * (policy.key_group / 2 + kScaleBytes + kMinimumBytes);
  format.tail = format.channels * policy.key_group * 4;
  if (!latent) format.row = row(value_dtype);
  format.token = format.row;
  if (format.group.value()) format.token += CeilDiv(*format.group.value(), policy.key_group);
  format.formula = fmt::format("{} layers × ({}{}{} × (4 + 32 ÷ {}) ÷ 8 bytes of K)", shape.layers,
                               latent ? "" : row_text(value_dtype) + " of V + ", heads_text,
                               width_text, policy.key_group);
  return format;
}

Result<void> CheckShape(const PlanShape& shape, const PlanPolicy& policy) {
  if (shape.layers < 1 || shape.layers > kMaxPlanLayers) {
    return MakeError(ErrorCode::kUsage, "layers is {}, but must be 1 to {}", shape.layers,
                     kMaxPlanLayers);
  }
  if (policy.hidden) {
    if (shape.embedding >= 1) return base::Success();
    return MakeError(ErrorCode::kUsage,
                     "embedding is 0, but a cache of the layers' inputs needs the model's width");
  }
  if (shape.latent_dim == 0) {
    if (shape.kv_heads < 1 || shape.head_dim < 1) {
      return MakeError(ErrorCode::kUsage,
                       "kv_heads is {} and head_dim {}, but both must be at least 1",
                       shape.kv_heads, shape.head_dim);
    }
    if (shape.rope_dim == 0) return base::Success();
    return MakeError(ErrorCode::kUsage, "rope_dim is {}, but there is no latent_dim",
                     shape.rope_dim);
  }
  if (shape.kv_heads == 0 && shape.head_dim == 0) return base::Success();
  return MakeError(ErrorCode::kUsage,
                   "latent_dim is {} beside kv_heads {} and head_dim {}: a layer caches a latent, "
                   "or keys and values",
                   shape.latent_dim, shape.kv_heads, shape.head_dim);
}

Result<void> CheckPolicy(const PlanShape& shape, const PlanPolicy& policy) {
  if (policy.sinks != 0 && policy.window == 0) {
    return MakeError(ErrorCode::kUsage, "sinks is {}, but there is no window", policy.sinks);
  }
  if (policy.value_dtype && (policy.hidden || shape.latent_dim != 0)) {
    return MakeError(ErrorCode::kUsage, "value_dtype is {}, but this cache holds no V of its own",
                     PlanDTypeName(*policy.value_dtype));
  }
  if (policy.hidden && (policy.dtype != PlanDType::kF32 || policy.key_group != 0)) {
    return MakeError(ErrorCode::kUsage, "a cache of the layers' inputs holds f32, not {}",
                     PlanDTypeName(policy.dtype));
  }
  if (policy.key_group == 0) return base::Success();
  if (policy.key_group % 16 != 0) {
    return MakeError(ErrorCode::kUsage, "key_group is {}, but must be a multiple of 16",
                     policy.key_group);
  }
  if (policy.dtype != PlanDType::kInt4 || policy.window != 0) {
    return MakeError(ErrorCode::kUsage, "key_group is {}, but is for int4 without a window",
                     policy.key_group);
  }
  return base::Success();
}

// Blocks, and groups of keys, that hold something of positions below `tokens`.
struct Held {
  std::uint64_t blocks = 0;
  std::uint64_t groups = 0;
};

// The most held on the way to this length. A window of W positions lies in (W − 1) / B rounded up
// blocks and one more when a position has just begun a block; sinks keep their blocks.
Held HeldAt(std::uint64_t tokens, const PlanPolicy& policy, std::uint64_t block_tokens) {
  Held held;
  held.blocks = CeilDiv(tokens, block_tokens);
  if (policy.window != 0) {
    const Amount most =
        Amount(CeilDiv(policy.sinks, block_tokens)) + CeilDiv(policy.window - 1, block_tokens) + 1;
    held.blocks = std::min(held.blocks, most.value().value_or(held.blocks));
  }
  if (policy.key_group != 0) held.groups = tokens / policy.key_group;
  return held;
}

// Positions that the query after `tokens` others sees of these.
std::uint64_t Visible(std::uint64_t tokens, const PlanPolicy& policy) {
  if (policy.window == 0) return tokens;
  return std::min(tokens, (Amount(policy.window) + policy.sinks).value().value_or(tokens));
}

// What all complete blocks and groups of the prefix take, held once.
Held SharedHeld(const PlanPolicy& policy, const PlanWorkload& workload) {
  return {workload.shared_prefix / workload.block_tokens,
          policy.key_group == 0 ? 0 : workload.shared_prefix / policy.key_group};
}

// Everything in amounts, so that one check at the end finds any overflow.
struct Totals {
  Amount sequences = 0, tokens = 0, blocks = 0, groups = 0, visible = 0;
  Amount empty_slots = 0;
  Amount groups_read = 0;  // Shared ones too.
  Amount tail_keys = 0;    // Positions whose key group is not complete.
};

// Of all requests; what the prefix shares is not part of it.
Totals PrivateTotals(const PlanPolicy& policy, const PlanWorkload& workload) {
  const Held shared = SharedHeld(policy, workload);
  Totals totals;
  for (const PlanRequests& request : workload.requests) {
    const Held held = HeldAt(request.tokens, policy, workload.block_tokens);
    const Amount count = request.count;
    totals.sequences += count;
    totals.tokens += count * request.tokens;
    totals.blocks += count * (held.blocks - shared.blocks);
    totals.groups += count * (held.groups - shared.groups);
    totals.visible += count * Visible(request.tokens, policy);
    if (policy.key_group != 0) {
      totals.groups_read += count * held.groups;
      totals.tail_keys += count * (request.tokens % policy.key_group);
    }
    const Amount slots = Amount(held.blocks) * workload.block_tokens;
    totals.empty_slots +=
        slots.value() ? count * (*slots.value() - Visible(request.tokens, policy)) : slots;
  }
  return totals;
}

Amount BytesOf(const PlanShape& shape, const LayerFormat& format, std::uint64_t block_tokens,
               Amount blocks, Amount groups, Amount sequences) {
  return Amount(shape.layers) *
         (blocks * block_tokens * format.row + groups * format.group + sequences * format.tail);
}

Amount SharedBytes(const PlanShape& shape, const PlanPolicy& policy, const PlanWorkload& workload,
                   const LayerFormat& format) {
  const Held shared = SharedHeld(policy, workload);
  return BytesOf(shape, format, workload.block_tokens, shared.blocks, shared.groups, 0);
}

Amount PrivateBytes(const PlanShape& shape, const PlanPolicy& policy, const PlanWorkload& workload,
                    const LayerFormat& format) {
  const Totals totals = PrivateTotals(policy, workload);
  return BytesOf(shape, format, workload.block_tokens, totals.blocks, totals.groups,
                 totals.sequences);
}

Result<void> CheckAll(const PlanShape& shape, const PlanPolicy& policy,
                      const PlanWorkload& workload) {
  KV_TRY(CheckShape(shape, policy));
  KV_TRY(CheckPolicy(shape, policy));
  return CheckWorkload(workload, policy.window);
}

kernels::KvType TypeOf(PlanDType dtype) {
  switch (dtype) {
    case PlanDType::kF32:
      return kernels::KvType::kF32;
    case PlanDType::kF16:
      return kernels::KvType::kF16;
    case PlanDType::kBF16:
      return kernels::KvType::kBf16;
    case PlanDType::kInt8:
      return kernels::KvType::kInt8;
    case PlanDType::kInt4:
      return kernels::KvType::kInt4;
  }
  return kernels::KvType::kF32;
}

// The setting as --kv has it; nothing if it has not.
std::optional<HeadPolicy> HeadPolicyOf(const PlanPolicy& policy) {
  HeadPolicy head = {.k = TypeOf(policy.dtype),
                     .v = TypeOf(policy.value_dtype.value_or(policy.dtype)),
                     .window = policy.window,
                     .sinks = policy.sinks};
  if (policy.window > kMaxWindow || policy.sinks > std::min(policy.window, kMaxSinks)) return {};
  if (policy.hidden) head.store = KvStore::kHidden;
  if (policy.key_group != 0) {
    if (std::find(std::begin(kKeyGroups), std::end(kKeyGroups), policy.key_group) ==
        std::end(kKeyGroups)) {
      return {};
    }
    head.k = kernels::KvType::kInt4Channel;
    head.group = static_cast<std::uint32_t>(policy.key_group);
  }
  if (FirstConflict(FeaturesOf(head), /*rotary=*/false) != nullptr) return {};
  return head;
}

// Whether the running cache holds so many bytes for this workload.
bool RunsHere(const PlanShape& shape, const PlanPolicy& policy, const PlanWorkload& workload,
              std::uint64_t bytes_total) {
  CacheGeometryOptions options = {.layers = shape.layers,
                                  .kv_heads = shape.kv_heads,
                                  .head_dim = shape.head_dim,
                                  .block_tokens = workload.block_tokens,
                                  .latent_dim = shape.latent_dim,
                                  .rope_dim = shape.rope_dim,
                                  .hidden_dim = shape.embedding};
  const std::optional<HeadPolicy> head = HeadPolicyOf(policy);
  if (!head || (shape.latent_dim != 0 && !(*head == HeadPolicy{}))) return false;
  if (shape.layers > kMaxLayers || shape.kv_heads > kMaxKvHeads) return false;
  if (shape.latent_dim == 0) {
    options.policy = CachePolicy::Of(shape.layers, shape.kv_heads,
                                     std::vector(shape.layers * shape.kv_heads, *head));
  }
  const auto plan = PlanPolicyCache(options, workload);
  return plan && plan.value().bytes_total == bytes_total;
}

}  // namespace

std::string_view PlanDTypeName(PlanDType dtype) {
  switch (dtype) {
    case PlanDType::kF32:
      return "f32";
    case PlanDType::kF16:
      return "f16";
    case PlanDType::kBF16:
      return "bf16";
    case PlanDType::kInt8:
      return "int8";
    case PlanDType::kInt4:
      return "int4";
  }
  return "?";
}

std::optional<PlanDType> FindPlanDType(std::string_view name) {
  for (const PlanDType dtype : kPlanDTypes) {
    if (PlanDTypeName(dtype) == name) return dtype;
  }
  return std::nullopt;
}

Result<CachePlan> PlanCache(const PlanShape& shape, const PlanPolicy& policy,
                            const PlanWorkload& workload) {
  KV_TRY(CheckAll(shape, policy, workload));
  LayerFormat format = FormatOf(shape, policy);
  const Totals totals = PrivateTotals(policy, workload);
  PlanWorkload unshared = workload;
  unshared.shared_prefix = 0;

  const Amount per_token = Amount(shape.layers) * format.token;
  const Amount block = Amount(shape.layers) * workload.block_tokens * format.row;
  const Amount total =
      SharedBytes(shape, policy, workload, format) + PrivateBytes(shape, policy, workload, format);
  const Amount without_sharing = PrivateBytes(shape, policy, unshared, format);
  const Amount blocks = totals.blocks + SharedHeld(policy, workload).blocks;
  const Amount empty = Amount(shape.layers) * format.row * totals.empty_slots;
  const Amount tail_key = policy.key_group == 0 ? 0 : format.channels * 4;
  const Amount read =
      Amount(shape.layers) * (totals.visible * format.row + totals.groups_read * format.group +
                              totals.tail_keys * tail_key);
  for (const Amount& amount : {per_token, block, total, without_sharing, blocks, empty, read,
                               totals.tokens, totals.sequences}) {
    if (!amount.value()) return WorkloadTooLarge(format.formula, workload);
  }
  return CachePlan{
      .runs = RunsHere(shape, policy, workload, *total.value()),
      .bytes_per_token = *per_token.value(),
      .bytes_per_layer = std::vector<std::uint64_t>(shape.layers, *format.token.value()),
      .block_bytes = *block.value(),
      .sequences = *totals.sequences.value(),
      .tokens = *totals.tokens.value(),
      .blocks = *blocks.value(),
      .bytes_total = *total.value(),
      .bytes_without_sharing = *without_sharing.value(),
      .bytes_empty = *empty.value(),
      .bytes_read_per_step = *read.value(),
      .formula = fmt::format("{} = {} bytes", format.formula, *per_token.value())};
}

Result<CacheFit> FitCache(const PlanShape& shape, const PlanPolicy& policy,
                          const PlanWorkload& workload, std::uint64_t memory_bytes) {
  KV_TRY(CheckAll(shape, policy, workload));
  const LayerFormat format = FormatOf(shape, policy);
  const auto fit = FitWorkload(workload, memory_bytes, [&](const PlanWorkload& other) {
    return WorkloadBytes{.shared = SharedBytes(shape, policy, other, format),
                         .own = PrivateBytes(shape, policy, other, format)};
  });
  if (!fit) return WorkloadTooLarge(format.formula, workload);
  return *fit;
}

}  // namespace kvasir::kvcache
