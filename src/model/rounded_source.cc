#include "model/rounded_source.h"

#include <memory>
#include <optional>
#include <vector>

#include "base/check.h"
#include "kernels/packed_matrix.h"
#include "model/model_file.h"
#include "tensor/convert.h"

namespace kvasir::model {

TensorSource RoundedSource(const TensorSource& source, tensor::DType dtype) {
  KV_CHECK(kernels::IsRoundedType(dtype));
  auto values = std::make_shared<std::vector<float>>();
  auto bytes = std::make_shared<std::vector<std::byte>>();
  const auto numbers = [source, dtype,
                        values](const TensorSpec& spec) -> base::Result<std::span<const float>> {
    KV_TRY(const std::span<const float> given, source(spec));
    if (WrittenType(spec, dtype) != dtype) return given;
    values->resize(given.size());
    tensor::ConvertToF32(dtype, tensor::ConvertFromF32(dtype, given), *values);
    return std::span<const float>(*values);
  };
  const auto blocks = [source, dtype,
                       bytes](const TensorSpec& spec) -> base::Result<std::optional<TensorBlocks>> {
    if (WrittenType(spec, dtype) != dtype) return std::optional<TensorBlocks>();
    KV_TRY(const std::span<const float> given, source(spec));
    *bytes = tensor::ConvertFromF32(dtype, given);
    return std::optional<TensorBlocks>({dtype, *bytes});
  };
  return {numbers, blocks};
}

}  // namespace kvasir::model
