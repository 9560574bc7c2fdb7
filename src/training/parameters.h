// All numbers of a model in one flat array, in the order of its tensors, and where each of them is.
#ifndef KVASIR_TRAINING_PARAMETERS_H_
#define KVASIR_TRAINING_PARAMETERS_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "training/model_config.h"

namespace kvasir::training {

struct ParameterSlice {
  std::string name;
  std::size_t begin = 0;  // In floats, a multiple of 16 but for what continues a product.
  std::size_t size = 0;
  bool decays = false;  // Weight decay acts on matrices and embeddings, never on norms and biases.
};

// Where each tensor lies in a flat array. Tensors whose rows make one product, as Llama's queries,
// keys and values, lie side by side without a gap. Immutable.
class ParameterLayout {
 public:
  explicit ParameterLayout(const ModelConfig& config);

  std::size_t size() const { return size_; }  // floats, gaps for alignment included
  const std::vector<ParameterSlice>& slices() const { return slices_; }
  const ParameterSlice& Find(const std::string& name) const;
  const ParameterSlice* FindIfThere(const std::string& name) const;

 private:
  std::vector<ParameterSlice> slices_;
  std::size_t size_ = 0;
};

// A tensor's numbers and where their gradients are added up; null if the model has no such tensor.
struct Parameter {
  const float* value = nullptr;
  float* gradient = nullptr;
};

// Two flat arrays of one layout, by names of tensors. Views.
struct BoundParameters {
  const ParameterLayout& layout;
  const float* values;
  float* gradients;

  Parameter Find(const std::string& name) const {
    const ParameterSlice* slice = layout.FindIfThere(name);
    if (slice == nullptr) return {};
    return {values + slice->begin, gradients + slice->begin};
  }
};

// Starting values: norms 1 and 0, biases 0, matrices normal(0, 0.02), those that write into the
// residual stream scaled by 1/√(2 · layers) as in GPT-2; drawn from Philox by (seed, tensor,
// element).
void Initialise(const ParameterLayout& layout, std::uint64_t layers, std::uint64_t seed,
                std::span<float> parameters);

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_PARAMETERS_H_
