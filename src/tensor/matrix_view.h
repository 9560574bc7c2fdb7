// A strided view of float rows: what kernels take. Never owns.
#ifndef KVASIR_TENSOR_MATRIX_VIEW_H_
#define KVASIR_TENSOR_MATRIX_VIEW_H_

#include <cstddef>

namespace kvasir::tensor {

// [rows, cols], element (r, c) at data[r * stride + c]; stride >= cols, in elements.
struct ConstMatrixView {
  const float* data = nullptr;
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t stride = 0;

  const float* row(std::size_t r) const { return data + r * stride; }
};

struct MatrixView {
  float* data = nullptr;
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t stride = 0;

  float* row(std::size_t r) const { return data + r * stride; }
  operator ConstMatrixView() const { return {data, rows, cols, stride}; }  // NOLINT
};

}  // namespace kvasir::tensor

#endif  // KVASIR_TENSOR_MATRIX_VIEW_H_
