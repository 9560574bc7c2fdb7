// The tensors of a model by name and shape, and where their numbers come from.
#ifndef KVASIR_MODEL_TENSOR_SPEC_H_
#define KVASIR_MODEL_TENSOR_SPEC_H_

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace kvasir::model {

struct TensorSpec {
  std::string name;     // As in GGUF.
  tensor::Shape shape;  // Row-major; a matrix is [outputs, inputs].
};

// Numbers in all these tensors together, whose counts must be checked.
inline std::uint64_t CountNumbers(std::span<const TensorSpec> specs) {
  std::uint64_t count = 0;
  for (const TensorSpec& spec : specs) count += spec.shape.ElementCount().value();
  return count;
}

// A name "blk.3.attn_norm.weight" taken apart: 3 and "attn_norm.weight".
struct BlockTensorName {
  std::size_t block = 0;
  std::string_view part;
};

// Requires a name of that form.
inline BlockTensorName SplitBlockName(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  KV_CHECK(name.starts_with(kPrefix));
  BlockTensorName split;
  const char* const last = name.data() + name.size();
  const char* const end = std::from_chars(name.data() + kPrefix.size(), last, split.block).ptr;
  KV_CHECK(end != last && *end == '.');
  split.part = name.substr(static_cast<std::size_t>(end - name.data()) + 1);
  return split;
}

// A tensor in blocks that products take as they are (R6): GGUF's of Q8_0 or Q4_0, row after row.
struct TensorBlocks {
  tensor::DType dtype = tensor::DType::kQ8_0;
  std::span<const std::byte> bytes;
};

// Where the numbers of tensors come from. What is given need only live until the next call.
class TensorSource {
 public:
  // The f32 numbers of a tensor, row-major.
  using Numbers = std::function<base::Result<std::span<const float>>(const TensorSpec&)>;
  // Its blocks, or nothing if it is not kept in such.
  using Blocks = std::function<base::Result<std::optional<TensorBlocks>>(const TensorSpec&)>;

  // From a function that is a Numbers.
  template <typename Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, TensorSource>)
      TensorSource(Function numbers, Blocks blocks = nullptr)  // NOLINT
      : numbers_(std::move(numbers)), blocks_(std::move(blocks)) {}

  base::Result<std::span<const float>> operator()(const TensorSpec& spec) const {
    return numbers_(spec);
  }
  base::Result<std::optional<TensorBlocks>> BlocksOf(const TensorSpec& spec) const {
    if (!blocks_) return std::optional<TensorBlocks>();
    return blocks_(spec);
  }

 private:
  Numbers numbers_;
  Blocks blocks_;
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_TENSOR_SPEC_H_
