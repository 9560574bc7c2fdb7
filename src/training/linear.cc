#include "training/linear.h"

#include "kernels/grads.h"

namespace kvasir::training {

void PackRows(Member& member, const float* x, std::size_t rows, std::size_t columns,
              kernels::PackedMatrix& out) {
  if (member.index() == 0) out.Reshape(columns, rows);
  member.Barrier();
  kernels::PackPanels({x, 1, columns}, out, member.Share(out.panel_count()));
  member.Barrier();
}

void Linear::Pack(const Member& member) {
  kernels::PackPanels({weight_.value, inputs(), 1}, forward_, member.Share(forward_.panel_count()));
  kernels::PackPanels({weight_.value, 1, inputs()}, backward_,
                      member.Share(backward_.panel_count()));
}

kernels::MatmulArgs Linear::Product(const float* x, float* out) const {
  kernels::MatmulArgs args;
  args.a = x;
  args.a_row_stride = inputs();
  args.w = &forward_;
  args.bias = bias_.value;
  args.out = out;
  args.out_stride = outputs();
  return args;
}

kernels::MatmulArgs Linear::InputGrad(const float* dy, std::size_t dy_stride, float* dx) const {
  kernels::MatmulArgs args;
  args.a = dy;
  args.a_row_stride = dy_stride;
  args.w = &backward_;
  args.out = dx;
  args.out_stride = inputs();
  return args;
}

void Linear::AddGradients(const Member& member, const float* dy, std::size_t dy_stride,
                          std::size_t rows, const kernels::PackedMatrix& packed_x) const {
  kernels::MatmulArgs args;
  args.a = dy;
  args.a_row_stride = 1;  // Row n of dW reads column n of dy.
  args.a_k_stride = dy_stride;
  args.w = &packed_x;
  args.out = weight_.gradient;
  args.out_stride = inputs();
  args.accumulate = true;
  kernels::MatmulShare(args, outputs(), member);
  if (bias_.gradient == nullptr) return;
  const base::IndexRange columns = ColumnShare(member, outputs());
  kernels::AddColumns(dy, rows, dy_stride, columns.begin, columns.end, bias_.gradient);
}

}  // namespace kvasir::training
