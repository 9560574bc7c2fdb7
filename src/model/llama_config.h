// Shape of a model of the Llama family, and the list of its tensors.
#ifndef KVASIR_MODEL_LLAMA_CONFIG_H_
#define KVASIR_MODEL_LLAMA_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/rope_settings.h"
#include "model/tensor_spec.h"

namespace kvasir::model {

// What general.architecture calls them. They differ in how RoPE pairs channels (llama: neighbours;
// the others: halves) and in what they must have: qwen2 biases, qwen3 norms of heads.
enum class LlamaFamily : std::uint8_t { kLlama, kQwen2, kQwen3 };
std::string_view ArchitectureName(LlamaFamily family);  // "llama"
kernels::RopePairing PairingOf(LlamaFamily family);

// Llama (Touvron et al. 2023, arXiv:2302.13971), with grouped-query attention (Ainslie et al. 2023,
// arXiv:2305.13245): pre-norm RMSNorm, rotary positions, SwiGLU, no biases; and what Qwen2 and
// Qwen3 add. kv_heads = heads is multi-head, 1 is multi-query attention.
struct LlamaConfig {
  LlamaFamily family = LlamaFamily::kLlama;
  std::uint64_t layers = 4;
  std::uint64_t heads = 4;
  std::uint64_t kv_heads = 4;        // divides heads
  std::uint64_t head_dim = 32;       // channels of a head; even
  std::uint64_t embedding = 128;     // channels; need not be heads · head_dim
  std::uint64_t feed_forward = 384;  // channels of the MLP's middle
  std::uint64_t context = 128;       // positions
  std::uint64_t vocab = 0;
  float norm_eps = 1e-5f;
  bool tied_head = false;   // The output matrix is the token embedding.
  bool qkv_bias = false;    // Queries, keys and values have biases (Qwen2).
  bool head_norms = false;  // An RMSNorm of each head's query and key, before RoPE (Qwen3).
  RopeSettings rope = {.dimensions = 32};
  // [layers]: how many positions a query of this layer sees, its own among them; 0: all. Empty: all
  // in every layer. A file knows one window only, so those that are not 0 are equal.
  std::vector<std::uint64_t> windows;

  std::uint64_t q_width() const { return heads * head_dim; }
  std::uint64_t kv_width() const { return kv_heads * head_dim; }
  std::uint64_t qkv_width() const { return q_width() + 2 * kv_width(); }
  std::string Key(std::string_view name) const;  // "llama.block_count"
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};

// kBadData naming the setting by its GGUF key, its value and what is allowed. Every other function
// of this folder requires a config that passed.
base::Result<void> CheckConfig(const LlamaConfig& config);

// All tensors of the model, in the order in which files hold them. (rope_freqs.weight is not one of
// them: its numbers are config.rope.divisors.)
std::vector<TensorSpec> LlamaTensors(const LlamaConfig& config);

// Numbers in all tensors together.
std::uint64_t ParameterCount(const LlamaConfig& config);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_LLAMA_CONFIG_H_
