#include "model/step_cache.h"

#include "base/check.h"
#include "kernels/hadamard.h"

namespace kvasir::model {

using kvcache::CachePart;
using kvcache::KvStore;

StepCache::StepCache(const StepRows& rows, const ModelShape& shape, const StepRotary& rotary,
                     Scratch& scratch, std::size_t first_slot)
    : rows_(rows), shape_(shape), rotary_(rotary), tap_(scratch.tap()) {
  FindNeeds();
  if (!sink_sets_.empty()) sink_turns_ = scratch.Get(first_slot, rows_.count() * sink_stride_);
  if (rebuilds_) PlaceRebuilt(scratch, first_slot + 1);
}

void StepCache::FindNeeds() {
  for (const RowSlice& slice : rows_.slices()) {
    for (const CachePart& part : slice.item->sequence->geometry().all_parts()) {
      needs_groups_ = needs_groups_ || part.policy.k == kernels::KvType::kInt4Channel;
      rebuilds_ = rebuilds_ || part.policy.store == KvStore::kHidden;
      if (part.policy.sinks == 0 || rotary_.frequencies.empty()) continue;
      if (SinksOf(part) != nullptr) continue;
      sink_sets_.push_back({part.policy.window, part.policy.sinks, sink_stride_});
      sink_stride_ += part.policy.sinks * 2 * rotary_.frequencies.size();
    }
  }
}

const StepCache::SinkSet* StepCache::SinksOf(const CachePart& part) const {
  for (const SinkSet& set : sink_sets_) {
    if (set.window == part.policy.window && set.sinks == part.policy.sinks) return &set;
  }
  return nullptr;
}

// Sink j of a query at t stands at max(j, t − W + 1 − S + j).
void StepCache::TurnSinks(const base::Member& member) const {
  if (sink_sets_.empty()) return;
  const std::size_t pairs = rotary_.frequencies.size();
  rows_.VisitShare(member, [&](const RowSlice& slice, base::IndexRange rows) {
    for (std::size_t row = rows.begin; row < rows.end; ++row) {
      const std::size_t position = slice.PositionOf(row);
      for (const SinkSet& set : sink_sets_) {
        const std::size_t reach = set.window + set.sinks - 1;
        const std::size_t before = position > reach ? position - reach : 0;
        float* turns = sink_turns_ + row * sink_stride_ + set.offset;
        for (std::size_t j = 0; j < set.sinks; ++j) {
          kernels::RopeTurn(rotary_.frequencies.data(), pairs, before + j, turns + j * 2 * pairs);
        }
      }
    }
  });
}

// The rows' own slots are scratch too: blocks of one layer's f32 keys and values for every slice.
void StepCache::PlaceRebuilt(Scratch& scratch, std::size_t slot) {
  const std::size_t width = shape_.kv_heads * shape_.head_dim;
  std::size_t past = 0;
  std::size_t blocks = 0;
  for (const RowSlice& slice : rows_.slices()) {
    past += slice.first_position;
    blocks += slice.item->sequence->geometry().BlocksFor(slice.first_position +
                                                         slice.item->tokens.size());
  }
  gathered_ = scratch.Get(slot, past * shape_.embedding);
  rebuilt_ = scratch.Get(slot + 1, past * (shape_.heads * shape_.head_dim + 2 * width));
  const std::size_t block_tokens = rows_.slices()[0].item->sequence->geometry().block_tokens();
  const std::size_t block_floats = block_tokens * 2 * width;
  float* next = scratch.Get(slot + 2, blocks * block_floats);
  for (const RowSlice& slice : rows_.slices()) {
    const kvcache::CacheGeometry& geometry = slice.item->sequence->geometry();
    KV_CHECK(geometry.block_tokens() == block_tokens);
    Rebuilt view;
    const std::size_t count = geometry.BlocksFor(slice.first_position + slice.item->tokens.size());
    for (std::size_t i = 0; i < count; ++i, next += block_floats) {
      view.blocks.push_back(reinterpret_cast<std::byte*>(next));
    }
    rebuilt_views_.push_back(std::move(view));
  }
}

kernels::KvView StepCache::RebuiltView(std::size_t slice) const {
  const std::uint32_t block_tokens =
      rows_.slices()[slice].item->sequence->geometry().block_tokens();
  return {.blocks = rebuilt_views_[slice].blocks.data(),
          .k_offset = 0,
          .v_offset = block_tokens * shape_.kv_heads * shape_.head_dim * sizeof(float),
          .block_tokens = block_tokens,
          .kv_heads = static_cast<std::uint32_t>(shape_.kv_heads),
          .head_dim = static_cast<std::uint32_t>(shape_.head_dim)};
}

std::vector<StepCache::Target> StepCache::RebuildTargets(std::size_t layer) const {
  std::vector<Target> targets;
  if (!rebuilds_) return targets;
  for (std::size_t s = 0; s < rows_.slices().size(); ++s) {
    const RowSlice& slice = rows_.slices()[s];
    const CachePart& part = slice.item->sequence->geometry().parts(layer)[0];
    if (part.policy.store != KvStore::kHidden) continue;
    const kvcache::Retention& keep = slice.item->sequence->geometry().group(*part.group).retention;
    const std::size_t seen = keep.FirstNeeded(slice.first_position);
    for (std::size_t p = 0; p < slice.first_position; ++p) {
      if (p < keep.sinks || p >= seen) targets.push_back({s, p});
    }
  }
  return targets;
}

void StepCache::MultiplyHidden(std::span<const Target> targets, std::size_t layer,
                               const KeyValueProduct& product, std::size_t first) const {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const kvcache::CachedSequence& sequence = *rows_.slices()[targets[i].slice].item->sequence;
    std::copy_n(sequence.HiddenRow(sequence.geometry().parts(layer)[0], targets[i].position),
                shape_.embedding, gathered_ + (first + i) * shape_.embedding);
  }
  const std::size_t outputs = product.weight->n();
  const kernels::MatmulArgs args =
      Product(gathered_ + first * shape_.embedding, shape_.embedding, *product.weight, product.bias,
              rebuilt_ + first * outputs, outputs);
  // Whole pairs of panels, which rounded weights lie in; some queries come along.
  constexpr std::size_t kPair = kernels::kPairPanels;
  const std::size_t panel = product.first_output / kernels::kPanelOutputs / kPair * kPair;
  kernels::Matmul(args, {0, targets.size()}, {panel, product.weight->panel_count()});
}

void StepCache::StoreRow(const RowSlice& slice, std::size_t layer, std::size_t position,
                         const HeadRow& row) const {
  const kvcache::CachedSequence& sequence = *slice.item->sequence;
  const std::size_t head_dim = shape_.head_dim;
  const std::size_t group = shape_.heads / shape_.kv_heads;
  for (const CachePart& part : sequence.geometry().parts(layer)) {
    float* k = row.k + part.first_head * head_dim;
    float* v = row.v + part.first_head * head_dim;
    if (part.policy.store == KvStore::kHidden) {
      std::copy_n(row.hidden, shape_.embedding, sequence.HiddenRow(part, position));
      const auto index = static_cast<std::size_t>(&slice - rows_.slices().data());
      kernels::StoreKv(RebuiltView(index), position, k, v);
      continue;
    }
    if (part.policy.rotate) {
      kernels::HadamardRotate(row.q + part.first_head * group * head_dim, part.heads * group,
                              head_dim);
      kernels::HadamardRotate(v, part.heads, head_dim);
    }
    // Where a sink will stand depends on the query: it is turned, and then rotated, when read.
    const bool turned_later = position < part.policy.sinks && !rotary_.frequencies.empty();
    if (part.policy.rotate && !turned_later) kernels::HadamardRotate(k, part.heads, head_dim);
    kernels::StoreKv(sequence.View(part), position,
                     turned_later ? row.unturned_k + part.first_head * head_dim : k, v);
  }
}

void StepCache::CompleteGroups(const base::Member& member, std::size_t layer) const {
  std::size_t unit = 0;
  for (const RowSlice& slice : rows_.slices()) {
    const std::size_t end = slice.first_position + slice.item->tokens.size();
    for (const CachePart& part : slice.item->sequence->geometry().parts(layer)) {
      if (part.policy.k != kernels::KvType::kInt4Channel) continue;
      const kernels::KvView view = slice.item->sequence->View(part);
      for (std::size_t g = slice.first_position / view.group; (g + 1) * view.group <= end; ++g) {
        for (std::size_t head = 0; head < part.heads; ++head) {
          if (unit++ % member.count() != member.index()) continue;
          kernels::CompleteKeyGroup(view, g, head);
        }
      }
    }
  }
}

// Heads that go to one member together, with few queries: of a group, so that they share the reads
// of K and V, or, where groups are of one head, so that their reads and chains overlap. Fewer, if
// that left members without work.
std::size_t StepCache::HeadsPerUnit(const base::Member& member, std::size_t queries) const {
  if (queries >= kernels::kAttentionTileRows) return 1;
  const std::size_t group = shape_.heads / shape_.kv_heads;
  std::size_t heads =
      std::min<std::size_t>(group == 1 ? shape_.heads : group, kernels::kAttentionTileRows);
  while (heads > 1 && rows_.slices().size() * shape_.heads / heads < member.count()) heads /= 2;
  return heads;
}

kernels::AttentionArgs StepCache::ArgsOf(const PartWork& work, bool last,
                                         const AttendArgs& a) const {
  const kvcache::HeadPolicy& policy = work.part->policy;
  const std::size_t first_row = work.slice->first_row + work.skipped;
  const std::size_t group = shape_.heads / shape_.kv_heads;
  const std::size_t column = work.part->first_head * group * shape_.head_dim;
  kernels::AttentionArgs args;
  args.q = a.q + first_row * a.q_stride + column;
  args.q_stride = a.q_stride;
  args.first_position = work.slice->first_position + work.skipped;
  args.heads = work.part->heads * group;
  args.scale = a.scale;
  args.window = policy.window == 0 ? a.window : std::min<std::size_t>(policy.window, a.window);
  args.sinks = policy.sinks;
  if (const SinkSet* set = SinksOf(*work.part); set != nullptr) {
    args.sink_turns = {.turns = sink_turns_ + first_row * sink_stride_ + set->offset,
                       .query_stride = sink_stride_,
                       .pairs = rotary_.frequencies.size(),
                       .pairing = rotary_.pairing,
                       .rotate = policy.rotate};
  }
  args.kv = policy.store == KvStore::kHidden ? RebuiltView(work.slice_index)
                                             : work.slice->item->sequence->View(*work.part);
  args.out = a.out + (last ? work.slice->first_wanted : first_row) * a.out_stride + column;
  args.out_stride = a.out_stride;
  return args;
}

// Work units of some heads and up to 16 queries, dealt out in turn: later queries see more keys, so
// dealing balances what splitting into ranges would not.
void StepCache::Attend(const base::Member& member, std::size_t layer, bool last,
                       const AttendArgs& a) const {
  constexpr std::size_t kUnitQueries = 16;
  const std::size_t group = shape_.heads / shape_.kv_heads;
  const std::size_t head_dim = shape_.head_dim;
  std::size_t unit = 0;
  for (std::size_t s = 0; s < rows_.slices().size(); ++s) {
    const RowSlice& slice = rows_.slices()[s];
    const std::size_t count = last ? slice.item->logit_rows : slice.item->tokens.size();
    const std::size_t unit_heads = HeadsPerUnit(member, count);
    for (const CachePart& part : slice.item->sequence->geometry().parts(layer)) {
      const PartWork work = {&slice, s, &part, count, slice.item->tokens.size() - count};
      const kernels::AttentionArgs args = ArgsOf(work, last, a);
      if (tap_ != nullptr && count > 0) {
        tap_->OnAttention(member, {layer, s, args.first_position, count}, part.first_head * group,
                          args);
      }
      for (std::size_t begin = 0; begin < count; begin += kUnitQueries) {
        const base::IndexRange queries = {begin, std::min(count, begin + kUnitQueries)};
        for (std::size_t head = 0; head < args.heads;) {
          const std::size_t group_end = group == 1 ? args.heads : (head / group + 1) * group;
          const std::size_t end = std::min(head + unit_heads, group_end);
          if (unit++ % member.count() == member.index()) {
            kernels::Attention(args, queries, {head, end});
            // Values were rotated, so their sums are: the rotation is its own inverse.
            for (std::size_t q = queries.begin; part.policy.rotate && q < queries.end; ++q) {
              kernels::HadamardRotate(args.out + q * args.out_stride + head * head_dim, end - head,
                                      head_dim);
            }
          }
          head = end;
        }
      }
    }
  }
}

}  // namespace kvasir::model
