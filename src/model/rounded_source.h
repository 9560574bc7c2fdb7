// A model's numbers rounded into blocks, without a file.
#ifndef KVASIR_MODEL_ROUNDED_SOURCE_H_
#define KVASIR_MODEL_ROUNDED_SOURCE_H_

#include "model/tensor_spec.h"
#include "tensor/dtype.h"

namespace kvasir::model {

// The numbers of `source` as a file holds them whose matrices are written as Q8_0 or Q4_0
// (WrittenType), in blocks. Asks source once for each time it is asked. Single-threaded.
TensorSource RoundedSource(const TensorSource& source, tensor::DType dtype);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_ROUNDED_SOURCE_H_
