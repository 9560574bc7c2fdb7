#include "model/step_rows.h"

#include "base/check.h"

namespace kvasir::model {

using base::ErrorCode;
using base::MakeError;

namespace {

base::Result<void> CheckItems(std::span<const BatchItem> items, const ModelShape& shape) {
  for (const BatchItem& item : items) {
    KV_CHECK(!item.tokens.empty() && item.logit_rows <= item.tokens.size());
    KV_CHECK(item.sequence->geometry().replayed_layers() ==
             items[0].sequence->geometry().replayed_layers());
    const std::size_t length = item.sequence->length();
    const std::uint64_t most = shape.MaxPositions(item.sequence->geometry());
    if (item.tokens.size() > most - std::min<std::size_t>(length, most)) {
      return MakeError(ErrorCode::kUsage,
                       "{} tokens after {} do not fit the model's context of {} tokens",
                       item.tokens.size(), length, most);
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

void StepRows::Show(StepTap& tap, std::size_t layer, bool wanted, const float* x,
                    std::size_t width) const {
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const RowSlice& slice = slices_[i];
    const std::size_t tokens = slice.item->tokens.size();
    const std::size_t count = wanted ? slice.item->logit_rows : tokens;
    const std::size_t first_row = wanted ? slice.first_wanted : slice.first_row;
    if (count == 0) continue;
    tap.OnHidden({layer, i, slice.first_position + tokens - count, count}, x + first_row * width);
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
