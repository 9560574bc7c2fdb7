#include "kernels/attention.h"

#include <algorithm>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"
#include "kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

Row RowOf(const AttentionArgs& args, std::size_t query, std::size_t head) {
  const std::size_t column = head * args.kv.head_dim;
  return {args.q + query * args.q_stride + column, args.out + query * args.out_stride + column,
          query, args.first_position + query, head / (args.heads / args.kv.kv_heads)};
}

// The given heads of one query: those that share a kv head side by side, or, where none do, heads
// with a kv head each.
template <bool kShared>
void HeadTiles(const AttentionArgs& args, std::size_t query, base::IndexRange heads) {
  constexpr std::size_t kMost = kAttentionTileRows;
  Row rows[kMost];
  for (std::size_t head = heads.begin; head < heads.end;) {
    const std::size_t left = heads.end - head;
    const std::size_t count = left >= kMost ? kMost : left >= 2 ? 2 : 1;
    for (std::size_t i = 0; i < count; ++i) rows[i] = RowOf(args, query, head + i);
    if (count == kMost) {
      RowTile<kMost, kShared ? 1 : kMost>(args, rows).Run();
    } else if (count == 2) {
      RowTile<2, kShared ? 1 : 2>(args, rows).Run();
    } else {
      RowTile<1, 1>(args, rows).Run();
    }
    head += count;
  }
}

// Queries of which, where keys are rounded by channel, all are in one group.
void AttendQueries(const AttentionArgs& args, base::IndexRange queries, base::IndexRange heads) {
  const std::size_t group = args.heads / args.kv.kv_heads;
  const std::size_t tiled = queries.size() / kAttentionTileRows * kAttentionTileRows;
  for (std::size_t head = heads.begin; head < heads.end && tiled > 0; ++head) {
    for (std::size_t i = 0; i < tiled; i += kAttentionTileRows) {
      Row rows[kAttentionTileRows];
      for (std::size_t j = 0; j < kAttentionTileRows; ++j) {
        rows[j] = RowOf(args, queries.begin + i + j, head);
      }
      RowTile<kAttentionTileRows, 1>(args, rows).Run();
    }
  }
  for (std::size_t query = queries.begin + tiled; query < queries.end; ++query) {
    if (group == 1) {
      HeadTiles<false>(args, query, heads);
      continue;
    }
    for (std::size_t begin = heads.begin; begin < heads.end;) {
      const std::size_t end = std::min(heads.end, (begin / group + 1) * group);
      HeadTiles<true>(args, query, {begin, end});
      begin = end;
    }
  }
}

void AttentionImpl(const AttentionArgs& args, base::IndexRange queries, base::IndexRange heads) {
  if (args.kv.k_type != KvType::kInt4Channel) return AttendQueries(args, queries, heads);
  const std::size_t group = args.kv.group;
  for (std::size_t begin = queries.begin; begin < queries.end;) {
    const std::size_t left = group - (args.first_position + begin) % group;
    const std::size_t end = std::min(queries.end, begin + left);
    AttendQueries(args, {begin, end}, heads);
    begin = end;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(AttentionImpl);

void Attention(const AttentionArgs& args, base::IndexRange queries, base::IndexRange heads) {
  KV_CHECK(args.kv.head_dim <= kMaxHeadDim && args.window >= 1);
  KV_CHECK(args.sinks <= kMaxSinks && args.sinks <= args.window);
  KV_CHECK(args.kv.v_type != KvType::kInt4Channel);
  if (args.kv.k_type == KvType::kInt4Channel) CheckKeyGroup(args.kv);
  if (args.sink_turns.turns != nullptr) KV_CHECK(2 * args.sink_turns.pairs <= args.kv.head_dim);
  HWY_DYNAMIC_DISPATCH(AttentionImpl)(args, queries, heads);
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
