#include "model/step_rows.h"

#include "base/check.h"

namespace kvasir::model {

using base::ErrorCode;
using base::MakeError;

namespace {

base::Result<void> CheckItems(std::span<const BatchItem> items, const ModelShape& shape) {
  for (const BatchItem& item : items) {
    KV_CHECK(!item.tokens.empty() && item.logit_rows <= item.tokens.size());
    const std::size_t length = item.sequence->length();
    if (item.tokens.size() > shape.context - std::min<std::size_t>(length, shape.context)) {
      return MakeError(ErrorCode::kUsage,
                       "{} tokens after {} do not fit the model's context of {} tokens",
                       item.tokens.size(), length, shape.context);
    }
    for (TokenId token : item.tokens) {
      if (token >= shape.vocab) {
        return MakeError(ErrorCode::kUsage, "token id {} is not below the vocabulary size {}",
                         token, shape.vocab);
      }
    }
  }
  return base::Success();
}

}  // namespace

base::Result<void> PrepareItems(std::span<const BatchItem> items, const ModelShape& shape,
                                std::size_t logits) {
  KV_TRY(CheckItems(items, shape));
  std::size_t wanted = 0;
  for (const BatchItem& item : items) {
    wanted += item.logit_rows;
    KV_TRY(item.sequence->Reserve(item.tokens.size()));
  }
  KV_CHECK(logits == wanted * shape.vocab);
  return base::Success();
}

StepRows::StepRows(std::span<const BatchItem> items) {
  slices_.reserve(items.size());
  for (const BatchItem& item : items) {
    slices_.push_back({&item, count_, wanted_, item.sequence->length()});
    count_ += item.tokens.size();
    wanted_ += item.logit_rows;
  }
}

void StepRows::CopyWanted(const base::Member& member, const float* x, std::size_t width,
                          float* out) const {
  if (member.index() != 0) return;
  for (const RowSlice& slice : slices_) {
    const std::size_t skipped = slice.item->tokens.size() - slice.item->logit_rows;
    std::copy_n(x + (slice.first_row + skipped) * width, slice.item->logit_rows * width,
                out + slice.first_wanted * width);
  }
}

// Heads that go to one member together, with few queries: of a group, so that they share the reads
// of K and V, or, where groups are of one head, so that their reads and chains overlap. Fewer, if
// that left members without work.
std::size_t StepRows::HeadsPerUnit(const base::Member& member, std::size_t queries,
                                   const AttendArgs& args) const {
  if (queries >= kernels::kAttentionTileRows) return 1;
  const std::size_t group = args.heads / args.kv_heads;
  std::size_t heads = std::min(group == 1 ? args.heads : group, kernels::kAttentionTileRows);
  while (heads > 1 && slices_.size() * args.heads / heads < member.count()) heads /= 2;
  return heads;
}

// Work units of some heads and up to 16 queries, dealt out in turn: later queries see more keys, so
// dealing balances what splitting into ranges would not.
void StepRows::Attend(const base::Member& member, std::size_t layer, bool last,
                      const AttendArgs& a) const {
  constexpr std::size_t kUnitQueries = 16;
  const std::size_t group = a.heads / a.kv_heads;
  std::size_t unit = 0;
  for (const RowSlice& slice : slices_) {
    const std::size_t count = last ? slice.item->logit_rows : slice.item->tokens.size();
    const std::size_t skipped = slice.item->tokens.size() - count;
    kernels::AttentionArgs args;
    args.q = a.q + (slice.first_row + skipped) * a.q_stride;
    args.q_stride = a.q_stride;
    args.first_position = slice.first_position + skipped;
    args.heads = a.heads;
    args.scale = a.scale;
    args.window = a.window;
    args.kv = slice.item->sequence->View(layer);
    args.out = a.out + (last ? slice.first_wanted : slice.first_row) * a.out_stride;
    args.out_stride = a.out_stride;
    const std::size_t unit_heads = HeadsPerUnit(member, count, a);
    for (std::size_t begin = 0; begin < count; begin += kUnitQueries) {
      for (std::size_t head = 0; head < a.heads;) {
        const std::size_t group_end = group == 1 ? a.heads : (head / group + 1) * group;
        const std::size_t end = std::min(head + unit_heads, group_end);
        if (unit++ % member.count() == member.index()) {
          kernels::Attention(args, {begin, std::min(count, begin + kUnitQueries)}, {head, end});
        }
        head = end;
      }
    }
  }
}

kernels::MatmulArgs Product(const float* in, std::size_t in_stride,
                            const kernels::PackedMatrix& weight, std::span<const float> bias,
                            float* out, std::size_t out_stride) {
  kernels::MatmulArgs args;
  args.a = in;
  args.a_row_stride = in_stride;
  args.w = &weight;
  args.bias = bias.empty() ? nullptr : bias.data();
  args.out = out;
  args.out_stride = out_stride;
  return args;
}

}  // namespace kvasir::model
