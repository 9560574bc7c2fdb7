#include "kvcache/policy_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kv_type.h"
#include "kvcache/plan_workload.h"

namespace kvasir::kvcache {
namespace {

using base::Result;

// Bytes of one position of a part: what is stored, and of its key alone while that is in f32.
struct PartBytes {
  std::uint64_t per_block = 0;  // Of block_tokens positions, without padding.
  std::uint64_t tail_key = 0;
};

class Plan {
 public:
  Plan(const CacheGeometry& geometry, const PlanWorkload& workload)
      : geometry_(geometry), workload_(workload) {}

  Result<void> Check() const { return CheckWorkload(workload_, WidestWindow()); }

  WorkloadBytes Bytes(const PlanWorkload& workload) const {
    WorkloadBytes bytes;
    for (const CacheGroup& group : geometry_.groups()) {
      const std::uint64_t shared = SharedBlocks(group, workload);
      bytes.shared += Amount(shared) * group.block_bytes;
      for (const PlanRequests& request : workload.requests) {
        const std::uint64_t own = MostBlocks(group, request.tokens) - shared;
        bytes.own += Amount(request.count) * own * group.block_bytes;
      }
    }
    return bytes;
  }

  std::vector<std::uint64_t> LayerBytes() const {
    std::vector<std::uint64_t> layers;
    for (std::uint32_t layer = 0; layer < geometry_.layers(); ++layer) {
      std::uint64_t per_block = 0;
      for (const CachePart& part : geometry_.parts(layer)) per_block += BytesOf(part).per_block;
      layers.push_back(CeilDiv(per_block, geometry_.block_tokens()));
    }
    return layers;
  }

  Amount Blocks() const {
    Amount blocks = 0;
    for (const CacheGroup& group : geometry_.groups()) {
      const std::uint64_t shared = SharedBlocks(group, workload_);
      blocks += shared;
      for (const PlanRequests& request : workload_.requests) {
        blocks += Amount(request.count) * (MostBlocks(group, request.tokens) - shared);
      }
    }
    return blocks;
  }

  // Slots that no query sees, in the blocks counted in the total.
  Amount Empty() const {
    Amount empty = 0;
    for (const CacheGroup& group : geometry_.groups()) {
      for (const PlanRequests& request : workload_.requests) {
        const Amount slots = Amount(MostBlocks(group, request.tokens)) * geometry_.block_tokens();
        if (!slots.value()) return slots;
        const std::uint64_t unseen =
            *slots.value() - std::min(*slots.value(), Seen(group.retention, request.tokens));
        empty += Amount(request.count) * unseen * (group.block_bytes / geometry_.block_tokens());
      }
    }
    return empty;
  }

  // What the query after `tokens` others reads, of every request.
  Amount Read() const {
    Amount read = 0;
    for (const CachePart& part : geometry_.all_parts()) {
      if (!part.group) continue;
      const PartBytes bytes = BytesOf(part);
      const Retention& keep = geometry_.group(*part.group).retention;
      for (const PlanRequests& request : workload_.requests) {
        const std::uint64_t seen = Seen(keep, request.tokens);
        const std::uint64_t tail =
            part.tail_group ? std::min(seen, request.tokens % part.policy.group) : 0;
        // Keys of the incomplete group are read in f32 instead of their tiles, which are its own.
        const std::uint64_t per_token = CeilDiv(bytes.per_block, geometry_.block_tokens());
        read += Amount(request.count) *
                (Amount(seen - tail) * per_token + Amount(tail) * bytes.tail_key +
                 Amount(tail) * ValueBytes(part));
      }
    }
    return read;
  }

 private:
  std::uint64_t WidestWindow() const {
    std::uint64_t widest = 0;
    for (const CacheGroup& group : geometry_.groups()) {
      widest = std::max(widest, group.retention.window);
    }
    return widest;
  }

  // A window of W positions lies in (W − 1) / B blocks rounded up, and one more when a position has
  // just begun a block.
  std::uint64_t MostBlocks(const CacheGroup& group, std::uint64_t tokens) const {
    const std::uint64_t all = geometry_.BlocksFor(tokens);
    const Retention& keep = group.retention;
    if (keep.KeepsAll()) return all;
    if (keep.tail != 0) return std::min(all, geometry_.BlocksFor(keep.tail));
    return std::min(all,
                    geometry_.BlocksFor(keep.sinks) + geometry_.BlocksFor(keep.window - 1) + 1);
  }

  std::uint64_t SharedBlocks(const CacheGroup& group, const PlanWorkload& workload) const {
    return group.retention.KeepsAll() ? workload.shared_prefix / geometry_.block_tokens() : 0;
  }

  static std::uint64_t Seen(const Retention& keep, std::uint64_t tokens) {
    if (keep.tail != 0) return tokens % keep.tail;
    return keep.window == 0 ? tokens : std::min(tokens, keep.window + keep.sinks);
  }

  std::uint64_t ValueBytes(const CachePart& part) const {
    return part.heads * kernels::VTileBytes(part.policy.v, geometry_.head_dim()) / kernels::kLanes;
  }

  PartBytes BytesOf(const CachePart& part) const {
    const std::uint64_t head_dim = geometry_.head_dim();
    const std::uint64_t block_tokens = geometry_.block_tokens();
    if (!part.group) return {};
    if (part.heads == 0 || part.policy.store == KvStore::kHidden) {
      const std::uint64_t width = part.heads == 0
                                      ? std::uint64_t{geometry_.latent_dim()} + geometry_.rope_dim()
                                      : geometry_.hidden_dim();
      return {.per_block = block_tokens * width * sizeof(float)};
    }
    const std::uint64_t tiles = block_tokens / kernels::kLanes;
    PartBytes bytes;
    bytes.per_block = part.heads * tiles *
                      (kernels::KTileBytes(part.policy.k, head_dim) +
                       kernels::VTileBytes(part.policy.v, head_dim));
    if (part.tail_group) {
      bytes.per_block += part.heads * CeilDiv(block_tokens * kernels::ChannelScaleBytes(head_dim),
                                              part.policy.group);
      bytes.tail_key = part.heads * head_dim * sizeof(float);
    }
    return bytes;
  }

  const CacheGeometry& geometry_;
  const PlanWorkload& workload_;
};

// "3 layers × 544 + 1 layer × 320 = 1952 bytes"
std::string Formula(const std::vector<std::uint64_t>& layers, std::uint64_t sum) {
  std::vector<std::pair<std::uint64_t, std::size_t>> kinds;  // Bytes, layers; first seen first.
  for (const std::uint64_t bytes : layers) {
    const auto known = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const auto& kind) { return kind.first == bytes; });
    if (known == kinds.end()) {
      kinds.emplace_back(bytes, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [bytes, count] : kinds) {
    text += fmt::format("{}{} {} × {}", text.empty() ? "" : " + ", count,
                        count == 1 ? "layer" : "layers", bytes);
  }
  return fmt::format("{} = {} bytes", text, sum);
}

}  // namespace

Result<CachePlan> PlanPolicyCache(const CacheGeometryOptions& options, const PlanWorkload& asked) {
  PlanWorkload workload = asked;
  workload.block_tokens = options.block_tokens;
  KV_TRY(const CacheGeometry geometry, CacheGeometry::Make(options));
  const Plan plan(geometry, workload);
  KV_TRY(plan.Check());
  PlanWorkload unshared = workload;
  unshared.shared_prefix = 0;
  Amount sequences = 0, tokens = 0;
  for (const PlanRequests& request : workload.requests) {
    sequences += request.count;
    tokens += Amount(request.count) * request.tokens;
  }
  CachePlan result;
  result.runs = true;
  result.bytes_per_layer = plan.LayerBytes();
  result.block_bytes = geometry.block_bytes();
  for (const std::uint64_t layer : result.bytes_per_layer) result.bytes_per_token += layer;
  result.formula = Formula(result.bytes_per_layer, result.bytes_per_token);
  const WorkloadBytes bytes = plan.Bytes(workload);
  const WorkloadBytes alone = plan.Bytes(unshared);
  const std::pair<std::uint64_t*, Amount> sums[] = {
      {&result.sequences, sequences},
      {&result.tokens, tokens},
      {&result.blocks, plan.Blocks()},
      {&result.bytes_total, bytes.shared + bytes.own},
      {&result.bytes_without_sharing, alone.shared + alone.own},
      {&result.bytes_empty, plan.Empty()},
      {&result.bytes_read_per_step, plan.Read()}};
  for (const auto& [number, sum] : sums) {
    if (!sum.value()) return WorkloadTooLarge(result.formula, workload);
    *number = *sum.value();
  }
  return result;
}

Result<CacheFit> FitPolicyCache(const CacheGeometryOptions& options, const PlanWorkload& asked,
                                std::uint64_t memory_bytes) {
  PlanWorkload workload = asked;
  workload.block_tokens = options.block_tokens;
  KV_TRY(const CachePlan plan_of_all, PlanPolicyCache(options, asked));
  KV_TRY(const CacheGeometry geometry, CacheGeometry::Make(options));
  const Plan plan(geometry, workload);
  const auto fit = FitWorkload(workload, memory_bytes,
                               [&](const PlanWorkload& other) { return plan.Bytes(other); });
  if (!fit) return WorkloadTooLarge(plan_of_all.formula, workload);
  return *fit;
}

}  // namespace kvasir::kvcache
