// All numbers of a model in one flat array, in the order of Gpt2Tensors, and views of each tensor.
#ifndef KVASIR_TRAINING_PARAMETERS_H_
#define KVASIR_TRAINING_PARAMETERS_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "model/gpt2_config.h"

namespace kvasir::training {

struct ParameterSlice {
  std::string name;
  std::size_t begin = 0;  // in floats, a multiple of 16
  std::size_t size = 0;
  bool decays = false;  // Weight decay acts on matrices and embeddings, never on norms and biases.
};

// Where each tensor lies in a flat array. Immutable.
class ParameterLayout {
 public:
  explicit ParameterLayout(const model::Gpt2Config& config);

  std::size_t size() const { return size_; }  // floats, gaps for alignment included
  const std::vector<ParameterSlice>& slices() const { return slices_; }
  const ParameterSlice& Find(const std::string& name) const;

 private:
  std::vector<ParameterSlice> slices_;
  std::size_t size_ = 0;
};

// The tensors of one layer, by role, inside a flat array of a layout.
template <typename T>
struct LayerTensors {
  T* norm1_gain;
  T* norm1_bias;
  T* qkv_weight;
  T* qkv_bias;
  T* output_weight;
  T* output_bias;
  T* norm2_gain;
  T* norm2_bias;
  T* up_weight;
  T* up_bias;
  T* down_weight;
  T* down_bias;
};

template <typename T>
struct ModelTensors {
  T* token_embedding;
  T* position_embedding;
  std::vector<LayerTensors<T>> layers;
  T* norm_gain;
  T* norm_bias;
  T* head;  // token_embedding when tied
};

template <typename T>
ModelTensors<T> TensorsIn(const ParameterLayout& layout, const model::Gpt2Config& config, T* flat) {
  const auto at = [&](const std::string& name) { return flat + layout.Find(name).begin; };
  ModelTensors<T> t;
  t.token_embedding = at("token_embd.weight");
  t.position_embedding = at("position_embd.weight");
  for (std::size_t i = 0; i < config.layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    t.layers.push_back({at(prefix + "attn_norm.weight"), at(prefix + "attn_norm.bias"),
                        at(prefix + "attn_qkv.weight"), at(prefix + "attn_qkv.bias"),
                        at(prefix + "attn_output.weight"), at(prefix + "attn_output.bias"),
                        at(prefix + "ffn_norm.weight"), at(prefix + "ffn_norm.bias"),
                        at(prefix + "ffn_up.weight"), at(prefix + "ffn_up.bias"),
                        at(prefix + "ffn_down.weight"), at(prefix + "ffn_down.bias")});
  }
  t.norm_gain = at("output_norm.weight");
  t.norm_bias = at("output_norm.bias");
  t.head = config.tied_head ? t.token_embedding : at("output.weight");
  return t;
}

// Starting values: norms 1 and 0, biases 0, matrices normal(0, 0.02), those that write into the
// residual stream scaled by 1/√(2 · layers) as in GPT-2; drawn from Philox by (seed, tensor,
// element).
void Initialise(const ParameterLayout& layout, const model::Gpt2Config& config, std::uint64_t seed,
                std::span<float> parameters);

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_PARAMETERS_H_
