// Shape of a dense model with multi-head latent attention, and the list of its tensors.
#ifndef KVASIR_MODEL_DEEPSEEK_CONFIG_H_
#define KVASIR_MODEL_DEEPSEEK_CONFIG_H_

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/rope_settings.h"
#include "model/tensor_spec.h"

namespace kvasir::model {

// DeepSeek-V2 without experts (arXiv:2405.04434, section 2.1), which GGUF calls deepseek2: Llama's
// norms, MLP and residuals around another attention. Of each token a layer keeps only a latent c of
// latent_dim numbers and one rotated key of rope.dimensions, whatever the number of heads. A head's
// key is W_uk c beside that rotated key, its value W_uv c.
struct DeepseekConfig {
  std::uint64_t layers = 4;
  std::uint64_t heads = 4;
  std::uint64_t embedding = 128;     // channels
  std::uint64_t feed_forward = 384;  // channels of the MLP's middle
  std::uint64_t context = 128;       // positions
  std::uint64_t vocab = 0;
  std::uint64_t query_rank = 0;  // Queries come by way of so many numbers; 0: straight from x.
  std::uint64_t latent_dim = 64;
  std::uint64_t nope_dim = 32;   // Channels of a head's query and key that know no position.
  std::uint64_t value_dim = 32;  // Channels of a head's value.
  float norm_eps = 1e-6f;
  bool tied_head = false;  // The output matrix is the token embedding.
  bool split_up = false;  // W_uk and W_uv are two tensors, W_uk transposed; else one, head by head.
  RopeSettings rope = {.dimensions = 16};  // The channels that do know it, after the others.

  std::uint64_t key_dim() const { return nope_dim + rope.dimensions; }      // Of a head.
  std::uint64_t entry_dim() const { return latent_dim + rope.dimensions; }  // What is cached.
  std::uint64_t q_width() const { return heads * key_dim(); }
  std::uint64_t value_width() const { return heads * value_dim; }
  friend bool operator==(const DeepseekConfig&, const DeepseekConfig&) = default;
};

// kBadData naming the setting by its GGUF key, its value and what is allowed. Every other function
// of this folder requires a config that passed.
base::Result<void> CheckConfig(const DeepseekConfig& config);

// All tensors of the model, in the order in which files hold them.
std::vector<TensorSpec> DeepseekTensors(const DeepseekConfig& config);

// Numbers in all tensors together.
std::uint64_t ParameterCount(const DeepseekConfig& config);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_DEEPSEEK_CONFIG_H_
