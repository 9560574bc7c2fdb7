#include "training/norm_rows.h"

namespace kvasir::training {

void NormRows::Forward(const Member& member, const float* x, std::size_t rows, float* y,
                       kernels::RowStats* stats) const {
  const base::IndexRange share = member.Share(rows);
  for (std::size_t r = share.begin; r < share.end; ++r) {
    const std::size_t at = r * width_;
    if (kind_ == NormKind::kLayerNorm) {
      kernels::LayerNorm(x + at, gain_.value, bias_.value, width_, eps_, y + at, &stats[r]);
    } else {
      kernels::RmsNorm(x + at, gain_.value, width_, eps_, y + at);
    }
  }
}

void NormRows::Backward(Member& member, const float* x, const float* dy, std::size_t rows,
                        kernels::RowStats* stats, float* dx) const {
  const bool layer_norm = kind_ == NormKind::kLayerNorm;
  const base::IndexRange share = member.Share(rows);
  for (std::size_t r = share.begin; r < share.end; ++r) {
    const std::size_t at = r * width_;
    if (layer_norm) {
      kernels::LayerNormInputGrad({x + at, dy + at, gain_.value, stats[r], width_, dx + at});
    } else {
      stats[r] = {0,
                  kernels::RmsNormInputGrad(x + at, dy + at, gain_.value, width_, eps_, dx + at)};
    }
  }
  const base::IndexRange columns = ColumnShare(member, width_);
  if (layer_norm) {
    kernels::LayerNormParameterGrad(x, dy, stats, rows, width_, columns.begin, columns.end,
                                    gain_.gradient, bias_.gradient);
  } else {
    member.Barrier();  // The other rows' stats.
    kernels::RmsNormGainGrad(x, dy, stats, rows, width_, columns.begin, columns.end,
                             gain_.gradient);
  }
  member.Barrier();
}

}  // namespace kvasir::training
