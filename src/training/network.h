// GPT-2 for training: the sampler's forward kernels with what the backward pass needs kept, and the
// backward pass written by hand (rule R8).
#ifndef KVASIR_TRAINING_NETWORK_H_
#define KVASIR_TRAINING_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "kernels/grads.h"
#include "kernels/kv_view.h"
#include "kernels/matmul.h"
#include "kernels/norm.h"
#include "model/gpt2_config.h"
#include "training/parameters.h"

namespace kvasir::training {

using base::Member;
using base::TokenId;

// Sequences that go through the network together. Which ones do never changes a bit of the result:
// gradients are chains over tokens that one batch ends and the next carries on.
struct MicroBatch {
  std::span<const TokenId> text;        // Inputs at start + i, targets at start + i + 1.
  std::span<const std::size_t> starts;  // [sequences]
  std::size_t length = 0;               // Positions of each sequence, <= context.
  std::size_t first_sequence = 0;  // Index of the first in the step's global batch: dropout's key.
  std::size_t rows() const { return starts.size() * length; }
};

struct DropoutSetting {
  float probability = 0;  // 0: none
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
};

// The largest work a network must have room for.
struct NetworkSize {
  std::size_t sequences = 1;  // Of a micro-batch.
  std::size_t members = 1;    // Of the team.
};

// Owns packed weights and activations. Every method but Bind is to be called by all members of one
// region, with the same arguments; it ends with a barrier. All memory is taken by the constructor
// and Bind: inside a region nobody could report that there is none. Dropout acts on the embeddings'
// sum and on what attention and MLP add to the residual stream.
class Network {
 public:
  Network(const model::Gpt2Config& config, const ParameterLayout& layout, const NetworkSize& size);

  // Where parameters are read and gradients added up: flat arrays of the layout, which stay there.
  void Bind(const float* parameters, float* gradient);

  // Packs the parameters for the products; call after every change.
  void Pack(Member& member);

  // Runs the layers up to the last norm.
  void Forward(Member& member, const MicroBatch& batch, const DropoutSetting& dropout);

  // After Forward: the rows' negative log-likelihoods in nats, losses [rows], without gradients.
  void Losses(Member& member, const MicroBatch& batch, double* losses);

  // After Forward: logits [rows][vocab], as the sampler would compute them.
  void Logits(Member& member, const MicroBatch& batch, float* logits);

  // After Forward: losses as above, and the gradient of weight · Σ losses carried on into
  // the bound array (the look-up part of a tied embedding goes to `lookup` [vocab][embedding], so
  // that its chain does not depend on the micro-batches; untied: lookup is null).
  void Backward(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                float weight, double* losses, float* lookup);

 private:
  // Rows of logits that exist at a time: never [tokens, vocab] of a whole batch.
  static constexpr std::size_t kHeadRows = 64;
  struct Linear {
    kernels::PackedMatrix forward;   // [outputs, inputs]
    kernels::PackedMatrix backward;  // [inputs, outputs]: its transpose
  };
  struct Layer {
    Linear qkv, output, up, down;
    // Activations, [rows][…]
    base::AlignedArray<float> normed1, qkv_rows, attended, middle_residual, normed2, up_rows,
        active;
    std::vector<kernels::RowStats> stats1, stats2;
  };
  struct Workspace {                  // One member's, for attention's backward pass.
    base::AlignedArray<float> p, ds;  // [length][length]
    kernels::PackedMatrix keys, values, keys_t, queries_t, grads_t;
  };

  void AllocateLayer(Layer& layer, std::size_t max_rows);
  void AllocateGradients(std::size_t max_rows);
  void AllocateWorkspaces(const NetworkSize& size);
  void PackLinear(Member& member, Linear& linear, const float* weights);
  void ForwardLayer(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                    std::size_t index);
  void BackwardHead(Member& member, const MicroBatch& batch, float weight, double* losses);
  void BackwardMlp(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                   std::size_t index);
  void BackwardAttention(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                         std::size_t index);
  void AttentionHeadGrad(Workspace& work, const Layer& layer, std::size_t first_row,
                         std::size_t length, std::size_t head);
  void BackwardEmbedding(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                         float* lookup);
  // y = dropout(x · Wᵀ + bias) + residual, rows share; fused when there is no dropout.
  void ResidualProduct(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                       std::uint32_t site, const float* in, const Linear& linear, const float* bias,
                       const float* residual, float* out);
  void DropRows(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                std::uint32_t site, float* rows);
  // Weight and bias gradients of y = x · Wᵀ + b: dW += dyᵀ · x, db += Σ dy. `packed_input` holds x
  // packed with PackRows.
  void LinearGrad(Member& member, const float* dy, std::size_t rows, std::size_t outputs,
                  const kernels::PackedMatrix& packed_input, float* weight_grad, float* bias_grad,
                  std::size_t dy_stride = 0 /* outputs */);
  void PackRows(Member& member, const float* x, std::size_t rows, std::size_t columns,
                kernels::PackedMatrix& out);
  void NormGrad(Member& member, const float* x, const float* dy,
                const std::vector<kernels::RowStats>& stats, const float* gain, std::size_t rows,
                float* gain_grad, float* bias_grad);
  // Logits of up to kHeadRows rows, whose stride is padded to whole panels.
  std::size_t LogitStride() const { return (config_.vocab + 15) / 16 * 16; }
  kernels::MatmulArgs LogitRows(const float* normed_rows);
  const float* LayerInput(std::size_t index) const { return residual_[index].data(); }
  kernels::KvView View(std::size_t sequence);
  void CutKv(const MicroBatch& batch);

  const model::Gpt2Config config_;
  const ParameterLayout& layout_;
  ModelTensors<const float> weights_;  // Where Bind says.
  ModelTensors<float> grads_;          // Likewise.
  std::vector<Layer> layers_;
  Linear head_;
  std::vector<base::AlignedArray<float>> residual_;  // [layers + 1][rows][embedding]
  base::AlignedArray<float> normed_;                 // [rows][embedding], after the last norm
  std::vector<kernels::RowStats> stats_;
  base::AlignedArray<float> temp_;    // [rows][embedding]
  base::AlignedArray<float> logits_;  // [head_rows][vocab]
  // Gradients of activations.
  base::AlignedArray<float> dx_;               // [rows][embedding] of the residual stream
  base::AlignedArray<float> dbranch_;          // [rows][embedding] of what a branch added
  base::AlignedArray<float> dnormed_;          // [rows][embedding]
  base::AlignedArray<float> dattended_;        // [rows][embedding]
  base::AlignedArray<float> dqkv_;             // [rows][3 · embedding]
  base::AlignedArray<float> dmiddle_;          // [rows][feed_forward]
  kernels::PackedMatrix packed_a_, packed_b_;  // Inputs of a layer's products, by PackRows.
  std::vector<Workspace> work_;                // [members that have a head to work on]
  base::AlignedArray<float> kv_;  // K tiles and V rows of all sequences, one layer at a time
  std::vector<std::byte*> kv_blocks_;
  std::size_t blocks_per_sequence_ = 0;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_NETWORK_H_
