#include "training/kv_run.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kv_store.h"

namespace kvasir::training {
namespace {

using kernels::KvType;

std::size_t BlocksFor(std::size_t positions) {
  return (positions + KvRun::kBlockTokens - 1) / KvRun::kBlockTokens;
}

std::size_t RoundUp64(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

KvRun::KvRun(const AttentionPlan& plan, const HeadRun& heads)
    : head_dim_(plan.head_dim), heads_(heads) {
  const std::size_t tiles = heads_.count * (kBlockTokens / kernels::kLanes);
  const kvcache::HeadPolicy& policy = heads_.policy;
  v_offset_ = RoundUp64(tiles * kernels::KTileBytes(policy.k, head_dim_));
  scale_offset_ = v_offset_ + RoundUp64(tiles * kernels::VTileBytes(policy.v, head_dim_));
  tail_offset_ = end_ = scale_offset_;
  if (!has_groups()) return;
  const std::size_t groups = std::max<std::size_t>(1, kBlockTokens / policy.group);
  tail_offset_ += RoundUp64(heads_.count * groups * kernels::ChannelScaleBytes(head_dim_));
  end_ = tail_offset_ + tiles * kernels::KTileBytes(KvType::kF32, head_dim_);
}

std::size_t KvRun::Bytes(std::size_t sequences, std::size_t context) const {
  return sequences * BlocksFor(context) * BlockBytes();
}

void KvRun::Place(std::byte* bytes, std::size_t sequences, std::size_t context) {
  blocks_.resize(sequences * BlocksFor(context));
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i] = bytes + i * BlockBytes();
}

kernels::KvView KvRun::View(std::size_t sequence, std::size_t length) const {
  const std::size_t first = sequence * BlocksFor(length);
  KV_CHECK(first + BlocksFor(length) <= blocks_.size());
  kernels::KvView view;
  view.blocks = blocks_.data() + first;
  view.v_offset = v_offset_;
  view.block_tokens = kBlockTokens;
  view.kv_heads = static_cast<std::uint32_t>(heads_.count);
  view.head_dim = static_cast<std::uint32_t>(head_dim_);
  view.k_type = heads_.policy.k;
  view.v_type = heads_.policy.v;
  if (has_groups()) {
    view.group = heads_.policy.group;
    view.k_scale_offset = scale_offset_;
    view.tail_blocks = view.blocks;
    view.tail_offset = tail_offset_;
  }
  return view;
}

void KvRun::Store(std::size_t sequence, std::size_t length, std::size_t position, const float* k,
                  const float* v) const {
  const std::size_t first = heads_.first * head_dim_;
  kernels::StoreKv(View(sequence, length), position, k + first, v + first);
}

void KvRun::CompleteGroups(const base::Member& member, std::size_t sequences,
                           std::size_t length) const {
  if (!has_groups()) return;
  std::size_t unit = 0;
  for (std::size_t s = 0; s < sequences; ++s) {
    const kernels::KvView view = View(s, length);
    for (std::size_t group = 0; (group + 1) * view.group <= length; ++group) {
      for (std::size_t head = 0; head < heads_.count; ++head) {
        if (unit++ % member.count() != member.index()) continue;
        kernels::CompleteKeyGroup(view, group, head);
      }
    }
  }
}

}  // namespace kvasir::training
