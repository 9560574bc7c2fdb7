// GPT-2's forward pass.
#ifndef KVASIR_MODEL_GPT2_MODEL_H_
#define KVASIR_MODEL_GPT2_MODEL_H_

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned.h"
#include "kernels/matmul.h"
#include "model/gpt2_config.h"
#include "model/model.h"

namespace kvasir::model {

// Gives the f32 numbers of a tensor, row-major. The span need only live until the next call.
using TensorSource = std::function<base::Result<std::span<const float>>(const TensorSpec& spec)>;

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
  // The unpacked f32 numbers of a tensor, as Make got them.
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
  // Where an item's rows lie in the step's matrices.
  struct Slice {
    const BatchItem* item;
    std::size_t first_row;       // among all rows
    std::size_t first_wanted;    // among the rows with logits
    std::size_t first_position;  // of its first token
  };
  class Step;  // gpt2_step.h: the buffers and phases of one Forward.

  explicit Gpt2Model(const Gpt2Config& config);
  base::Result<void> Load(const TensorSource& source);
  // The slot a tensor goes to: one of a plain array or a packed matrix.
  struct Slot {
    base::AlignedArray<float>* plain = nullptr;
    kernels::PackedMatrix* packed = nullptr;
  };
  Slot SlotOf(std::string_view name);
  base::Result<void> CheckItems(std::span<const BatchItem> items) const;

  Gpt2Config config_;
  ModelShape shape_;
  base::AlignedArray<float> token_embedding_;     // [vocab][embedding]
  base::AlignedArray<float> position_embedding_;  // [context][embedding]
  std::vector<Layer> layers_;
  Norm output_norm_;
  kernels::PackedMatrix head_;  // [vocab, embedding]
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_GPT2_MODEL_H_
