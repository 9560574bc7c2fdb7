// The Llama family's forward pass.
#ifndef KVASIR_MODEL_LLAMA_MODEL_H_
#define KVASIR_MODEL_LLAMA_MODEL_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned.h"
#include "kernels/matmul.h"
#include "model/llama_config.h"
#include "model/model.h"
#include "model/tensor_spec.h"
#include "model/token_table.h"
#include "model/weight_slot.h"

namespace kvasir::model {

class LlamaModel : public Model {
 public:
  // Asks source for every tensor of the config once, in order, and packs it. Requires a checked
  // config; passes on the source's Errors.
  static base::Result<std::unique_ptr<LlamaModel>> Make(const LlamaConfig& config,
                                                        const TensorSource& source);

  const ModelShape& shape() const override { return shape_; }
  const LlamaConfig& config() const { return config_; }
  base::Result<void> Forward(std::span<const BatchItem> items, Scratch& scratch,
                             base::ThreadTeam& team, std::span<float> logits) const override;
  // The f32 numbers of a tensor, as Make got them, or those that its blocks mean.
  std::vector<float> TensorValues(const TensorSpec& spec) const;

 private:
  using Gain = base::AlignedArray<float>;
  struct Layer {
    Gain attention_norm;                 // [embedding]
    kernels::PackedMatrix qkv;           // [qkv_width, embedding]: rows of q, then k, then v
    base::AlignedArray<float> qkv_bias;  // [qkv_width], or empty
    Gain q_norm, k_norm;                 // [head_dim], or empty
    kernels::PackedMatrix output;        // [embedding, q_width]
    Gain mlp_norm;                       // [embedding]
    kernels::PackedMatrix gate;          // [feed_forward, embedding]
    kernels::PackedMatrix up;            // [feed_forward, embedding]
    kernels::PackedMatrix down;          // [embedding, feed_forward]
  };
  class Step;  // The buffers and phases of one Forward.

  explicit LlamaModel(const LlamaConfig& config);
  base::Result<void> Load(const TensorSource& source);
  WeightSlot SlotOf(std::string_view name);
  const kernels::PackedMatrix& Head() const { return config_.tied_head ? tokens_.packed : head_; }

  LlamaConfig config_;
  ModelShape shape_;
  std::vector<double> frequencies_;  // [rope dimensions / 2] a position's turn
  TokenTable tokens_;
  std::vector<Layer> layers_;
  Gain output_norm_;            // [embedding]
  kernels::PackedMatrix head_;  // [vocab, embedding]; empty if tied
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_LLAMA_MODEL_H_
