// Shape of a GPT-2 model, and the list of its tensors.
#ifndef KVASIR_MODEL_GPT2_CONFIG_H_
#define KVASIR_MODEL_GPT2_CONFIG_H_

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/tensor_spec.h"

namespace kvasir::model {

// GPT-2 (Radford et al. 2019): learned positions, pre-norm LayerNorm, GELU in its tanh form,
// biases.
struct Gpt2Config {
  std::uint64_t layers = 4;
  std::uint64_t heads = 4;
  std::uint64_t embedding = 128;     // channels; a multiple of heads
  std::uint64_t feed_forward = 512;  // channels of the MLP's middle
  std::uint64_t context = 128;       // positions
  std::uint64_t vocab = 0;
  float norm_eps = 1e-5f;
  bool tied_head = false;  // The output matrix is the token embedding.

  std::uint64_t head_dim() const { return embedding / heads; }
  friend bool operator==(const Gpt2Config&, const Gpt2Config&) = default;
};

// kBadData naming the setting by its GGUF key, its value and what is allowed. Every other function
// of this folder requires a config that passed.
base::Result<void> CheckConfig(const Gpt2Config& config);

// All tensors of the model, in the order in which files and the trainer hold them.
std::vector<TensorSpec> Gpt2Tensors(const Gpt2Config& config);

// Numbers in all tensors together.
std::uint64_t ParameterCount(const Gpt2Config& config);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_GPT2_CONFIG_H_
