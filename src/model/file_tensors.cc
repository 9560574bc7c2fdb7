#include "model/file_tensors.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "formats/printable.h"
#include "kernels/packed_matrix.h"
#include "kernels/softmax.h"
#include "tensor/convert.h"
#include "tensor/half.h"

namespace kvasir::model {

using base::ErrorCode;
using base::MakeError;

base::Result<void> CheckTensors(const formats::GgufFile& file, std::span<const TensorSpec> specs) {
  for (const TensorSpec& spec : specs) {
    KV_TRY(const formats::GgufTensor* tensor, file.Get(spec.name));
    if (tensor->shape != spec.shape) {
      return MakeError(ErrorCode::kBadData, "tensor '{}' has shape {}; the metadata asks for {}",
                       spec.name, tensor->shape.ToString(), spec.shape.ToString());
    }
    KV_TRY(file.DTypeOf(*tensor));
  }
  return base::Success();
}

base::Result<void> RefuseOtherTensors(const formats::GgufFile& file,
                                      std::span<const TensorSpec> specs) {
  std::unordered_set<std::string_view> known = {"rope_freqs.weight"};
  for (const TensorSpec& spec : specs) known.insert(spec.name);
  for (const formats::GgufTensor& tensor : file.tensors()) {
    if (!known.contains(tensor.name)) {
      return MakeError(ErrorCode::kBadData, "tensor {} is not one that this architecture uses here",
                       formats::Quoted(tensor.name));
    }
  }
  return base::Success();
}

namespace {

base::Error NotFinite(const TensorSpec& spec) {
  return MakeError(ErrorCode::kBadData, "tensor '{}' holds a number that is not finite", spec.name);
}

// Of Q8_0 or Q4_0, whose blocks begin with their scale as f16.
bool ScalesAreFinite(const TensorBlocks& blocks) {
  for (std::size_t at = 0; at < blocks.bytes.size(); at += tensor::BlockBytes(blocks.dtype)) {
    std::uint16_t scale;
    std::memcpy(&scale, blocks.bytes.data() + at, 2);
    if (!std::isfinite(tensor::F16ToF32(scale))) return false;
  }
  return true;
}

}  // namespace

TensorSource FileSource(const formats::GgufFile& file) {
  auto values = std::make_shared<std::vector<float>>();
  const auto numbers = [&file,
                        values](const TensorSpec& spec) -> base::Result<std::span<const float>> {
    const formats::GgufTensor* tensor = file.Find(spec.name);
    KV_TRY(const tensor::DType dtype, file.DTypeOf(*tensor));
    values->resize(spec.shape.ElementCount().value());
    tensor::ConvertToF32(dtype, tensor->data, *values);
    if (!kernels::AllFinite(values->data(), values->size())) return NotFinite(spec);
    return std::span<const float>(*values);
  };
  const auto blocks = [&file](const TensorSpec& spec) -> base::Result<std::optional<TensorBlocks>> {
    const formats::GgufTensor* tensor = file.Find(spec.name);
    KV_TRY(const tensor::DType dtype, file.DTypeOf(*tensor));
    if (!kernels::IsRoundedType(dtype)) return std::optional<TensorBlocks>();
    const TensorBlocks found = {dtype, tensor->data};
    if (!ScalesAreFinite(found)) return NotFinite(spec);
    return std::optional(found);
  };
  return {numbers, blocks};
}

}  // namespace kvasir::model
