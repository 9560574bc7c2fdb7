// The forward pass of multi-head latent attention, absorbed.
#ifndef KVASIR_MODEL_DEEPSEEK_MODEL_H_
#define KVASIR_MODEL_DEEPSEEK_MODEL_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned.h"
#include "kernels/matmul.h"
#include "model/deepseek_config.h"
#include "model/model.h"
#include "model/tensor_spec.h"
#include "model/token_table.h"
#include "model/weight_slot.h"

namespace kvasir::model {

class DeepseekModel : public Model {
 public:
  // Asks source for every tensor of the config once, in order, and packs it. Requires a checked
  // config; passes on the source's Errors.
  static base::Result<std::unique_ptr<DeepseekModel>> Make(const DeepseekConfig& config,
                                                           const TensorSource& source);

  const ModelShape& shape() const override { return shape_; }
  const DeepseekConfig& config() const { return config_; }
  base::Result<void> Forward(std::span<const BatchItem> items, Scratch& scratch,
                             base::ThreadTeam& team, std::span<float> logits) const override;

 private:
  using Gain = base::AlignedArray<float>;
  struct Layer {
    Gain attention_norm;           // [embedding]
    kernels::PackedMatrix q_down;  // [query_rank, embedding], or empty
    Gain q_norm;                   // [query_rank], or empty
    kernels::PackedMatrix q;       // [q_width, query_rank or embedding]: heads, each nope then rope
    kernels::PackedMatrix kv_down;  // [entry_dim, embedding]: the latent, then the rotated key
    Gain latent_norm;               // [latent_dim]
    std::vector<kernels::PackedMatrix> absorb;  // [heads], each W_ukᵀ [latent_dim, nope_dim]
    std::vector<kernels::PackedMatrix> expand;  // [heads], each W_uv [value_dim, latent_dim]
    kernels::PackedMatrix output;               // [embedding, value_width]
    Gain mlp_norm;                              // [embedding]
    kernels::PackedMatrix gate;                 // [feed_forward, embedding]
    kernels::PackedMatrix up;                   // [feed_forward, embedding]
    kernels::PackedMatrix down;                 // [embedding, feed_forward]
  };
  class Step;  // The buffers and phases of one Forward.

  explicit DeepseekModel(const DeepseekConfig& config);
  base::Result<void> Load(const TensorSource& source);
  base::Result<void> LoadTensor(const TensorSpec& spec, const TensorSource& source);
  base::Result<void> LoadUp(Layer& layer, std::string_view part, const TensorSpec& spec,
                            const TensorSource& source) const;
  void FillUp(Layer& layer, std::string_view part, const float* values) const;
  std::uint64_t SavedBytes() const;
  const kernels::PackedMatrix& Head() const { return config_.tied_head ? tokens_.packed : head_; }
  static WeightSlot SlotOf(Layer& layer, std::string_view part);

  DeepseekConfig config_;
  ModelShape shape_;
  std::vector<double> frequencies_;  // [rope dimensions / 2] a position's turn
  TokenTable tokens_;
  std::vector<Layer> layers_;
  Gain output_norm_;            // [embedding]
  kernels::PackedMatrix head_;  // [vocab, embedding]; empty if tied
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_DEEPSEEK_MODEL_H_
