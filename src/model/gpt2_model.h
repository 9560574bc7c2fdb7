// GPT-2's forward pass.
#ifndef KVASIR_MODEL_GPT2_MODEL_H_
#define KVASIR_MODEL_GPT2_MODEL_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned.h"
#include "kernels/matmul.h"
#include "model/gpt2_config.h"
#include "model/model.h"
#include "model/tensor_spec.h"
#include "model/token_table.h"
#include "model/weight_slot.h"

namespace kvasir::model {

class Gpt2Model : public Model {
 public:
  // Asks source for every tensor of the config once, in order, and packs it. Requires a checked
  // config; passes on the source's Errors.
  static base::Result<std::unique_ptr<Gpt2Model>> Make(const Gpt2Config& config,
                                                       const TensorSource& source);

  const ModelShape& shape() const override { return shape_; }
  const Gpt2Config& config() const { return config_; }
  base::Result<void> Forward(std::span<const BatchItem> items, Scratch& scratch,
                             base::ThreadTeam& team, std::span<float> logits) const override;
  // The f32 numbers of a tensor, as Make got them, or those that its blocks mean.
  std::vector<float> TensorValues(const TensorSpec& spec) const;

 private:
  struct Norm {
    base::AlignedArray<float> gain, bias;  // [embedding]
  };
  struct Linear {
    kernels::PackedMatrix weight;  // [outputs, inputs]
    base::AlignedArray<float> bias;
  };
  struct Layer {
    Norm attention_norm;
    Linear qkv;     // [3 · embedding, embedding]: rows of q, then k, then v, heads in order
    Linear output;  // [embedding, embedding]
    Norm mlp_norm;
    Linear up;    // [feed_forward, embedding]
    Linear down;  // [embedding, feed_forward]
  };
  class Step;  // The buffers and phases of one Forward.

  explicit Gpt2Model(const Gpt2Config& config);
  base::Result<void> Load(const TensorSource& source);
  WeightSlot SlotOf(std::string_view name);
  const kernels::PackedMatrix& Head() const { return config_.tied_head ? tokens_.packed : head_; }

  Gpt2Config config_;
  ModelShape shape_;
  TokenTable tokens_;
  base::AlignedArray<float> position_embedding_;  // [context][embedding]
  std::vector<Layer> layers_;
  Norm output_norm_;
  kernels::PackedMatrix head_;  // [vocab, embedding]; empty if tied
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_GPT2_MODEL_H_
