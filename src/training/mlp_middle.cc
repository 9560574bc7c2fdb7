#include "training/mlp_middle.h"

#include "kernels/activation.h"

namespace kvasir::training {

void MlpMiddle::Forward(const Pass& pass, float* first, float* last) {
  const base::IndexRange rows = pass.RowShare();
  if (kind_ == MlpKind::kGelu) {
    kernels::Gelu(first + rows.begin * width_, rows.size() * width_, last + rows.begin * width_);
  } else {
    for (std::size_t r = rows.begin; r < rows.end; ++r) {
      const float* gate = first + r * 2 * width_;
      kernels::SwiGlu(gate, gate + width_, width_, last + r * width_);
    }
  }
  pass.member.Barrier();
}

void MlpMiddle::Backward(const Pass& pass, const float* first, float* dlast, float* dfirst) {
  const base::IndexRange rows = pass.RowShare();
  if (kind_ == MlpKind::kGelu) {
    const std::size_t begin = rows.begin * width_;
    kernels::GeluGrad(first + begin, dlast + begin, rows.size() * width_, dfirst + begin);
  } else {
    for (std::size_t r = rows.begin; r < rows.end; ++r) {
      const float* gate = first + r * 2 * width_;
      float* dgate = dfirst + r * 2 * width_;
      kernels::SwiGluGrad(gate, gate + width_, dlast + r * width_, width_, dgate, dgate + width_);
    }
  }
  pass.member.Barrier();
}

}  // namespace kvasir::training
