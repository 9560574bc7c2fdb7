// The tensors of a model folder: what transformers calls them, and how their numbers lie.
#ifndef KVASIR_MODEL_HF_TENSORS_H_
#define KVASIR_MODEL_HF_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "formats/gguf_writer.h"
#include "formats/safetensors_set.h"
#include "model/gpt2_config.h"
#include "model/llama_config.h"
#include "model/tensor_spec.h"

namespace kvasir::model {

// How a tensor's rows lie in a safetensors file, compared with the GGUF file's.
enum class HfOrder {
  kSame,
  kTransposed,  // [inputs, outputs]: GPT-2's matrices, which it calls Conv1D.
  // Of queries and keys of llama: a head's channels lie as halves that turn together (i, i + d/2),
  // where GGUF has neighbours (2i, 2i + 1).
  kHalves,
};

struct HfTensor {
  TensorSpec spec;   // The GGUF file's.
  std::string name;  // In the safetensors file, behind its prefix.
  HfOrder order = HfOrder::kSame;
};

using HfModelConfig = std::variant<Gpt2Config, LlamaConfig>;

// All tensors of a model, in the order of GGUF files. (Of a tied head there is no tensor.)
std::vector<HfTensor> HfTensors(const HfModelConfig& config);
// What transformers puts before each name but that of the head: "transformer.", "model.".
std::string_view HfPrefix(const HfModelConfig& config);
// The name of the head's matrix, which has no prefix.
inline constexpr std::string_view kHfHeadName = "lm_head.weight";

// The elements of a tensor moved from one order into the other; `width` bytes each. head_dim: of
// kHalves. Requires a matrix (kHalves: whole heads of rows).
enum class HfDirection { kToGguf, kFromGguf };
std::vector<std::byte> Reordered(const HfTensor& tensor, HfDirection direction, std::size_t width,
                                 std::uint64_t head_dim, std::span<const std::byte> bytes);

// kBadData naming a tensor that is missing, has another shape than the config asks for or a type
// that is not read; and one that the model would not use, unless it is a mask or a table of
// frequencies, or a head that is the embedding. Takes no memory but for names.
base::Result<void> CheckHfTensors(const formats::SafetensorsSet& set, const HfModelConfig& config);

// Adds each tensor to the writer in GGUF's order and in the type it has (vectors and position
// embeddings as f32, which is exact). Requires that CheckHfTensors passed. The set must outlive the
// writer's last use.
void AddHfTensors(const formats::SafetensorsSet& set, const HfModelConfig& config,
                  formats::GgufWriter& writer);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_HF_TENSORS_H_
