#include "training/kv_rows.h"

#include "base/check.h"

namespace kvasir::training {
namespace {

std::size_t BlocksFor(std::size_t positions) {
  return (positions + KvRows::kBlockTokens - 1) / KvRows::kBlockTokens;
}

}  // namespace

KvRows::KvRows(const AttentionPlan& plan, std::size_t sequences, std::size_t context)
    : plan_(plan),
      floats_(sequences * BlocksFor(context) * kBlockTokens * 2 * plan.kv_width()),
      blocks_(sequences * BlocksFor(context)) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i] =
        reinterpret_cast<std::byte*>(floats_.data() + i * kBlockTokens * 2 * plan.kv_width());
  }
}

kernels::KvView KvRows::View(std::size_t sequence, std::size_t length) const {
  const std::size_t first = sequence * BlocksFor(length);
  KV_CHECK(first + BlocksFor(length) <= blocks_.size());
  return {.blocks = const_cast<std::byte* const*>(blocks_.data()) + first,
          .k_offset = 0,
          .v_offset = kBlockTokens * plan_.kv_width() * sizeof(float),
          .block_tokens = kBlockTokens,
          .kv_heads = static_cast<std::uint32_t>(plan_.kv_heads),
          .head_dim = static_cast<std::uint32_t>(plan_.head_dim)};
}

}  // namespace kvasir::training
