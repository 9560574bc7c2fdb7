// A model for training: the sampler's forward kernels with what the backward pass needs kept, and
// the backward pass written by hand (rule R8).
#ifndef KVASIR_TRAINING_NETWORK_H_
#define KVASIR_TRAINING_NETWORK_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "base/aligned.h"
#include "training/attention_middle.h"
#include "training/branch.h"
#include "training/linear.h"
#include "training/micro_batch.h"
#include "training/network_plan.h"
#include "training/norm_rows.h"
#include "training/parameters.h"

namespace kvasir::training {

// The largest work a network must have room for.
struct NetworkSize {
  std::size_t sequences = 1;  // Of a micro-batch.
  std::size_t members = 1;    // Of the team.
  bool recompute = false;     // Keep the residual stream alone: less memory, more work, same bits.
};

// Embeddings, branches, the last norm and the head, of any architecture (NetworkPlan). Owns packed
// weights and activations. Every method but Bind is to be called by all members of one region, with
// the same arguments; it ends with a barrier. All memory is taken by the constructor: inside a
// region nobody could report that there is none. Dropout acts on the embeddings' sum (site 0) and
// on what each branch adds to the residual stream (sites 1, 2, …).
class Network {
 public:
  // Rows of logits that exist at a time: never [tokens, vocab] of a whole batch.
  static constexpr std::size_t kHeadRows = 64;

  // The layout is of the config that the plan was made from, and outlives the network.
  Network(NetworkPlan plan, const ParameterLayout& layout, const NetworkSize& size);

  // Where parameters are read and gradients added up: flat arrays of the layout, which stay there.
  void Bind(const float* parameters, float* gradient);

  // Packs the parameters for the products; call after every change.
  void Pack(Member& member);

  // Runs the layers up to the last norm.
  void Forward(Member& member, const MicroBatch& batch, const Disturbance& disturbance);

  // After Forward: the rows' negative log-likelihoods in nats, losses [rows], without gradients.
  void Losses(Member& member, const MicroBatch& batch, double* losses);

  // After Forward: logits [rows][vocab], as the sampler would compute them.
  void Logits(Member& member, const MicroBatch& batch, float* logits);

  // After Forward: losses as above, and the gradient of weight · Σ losses carried on into
  // the bound array (the look-up part of a tied embedding goes to `lookup` [vocab][embedding], so
  // that its chain does not depend on the micro-batches; untied: lookup is null).
  void Backward(Member& member, const MicroBatch& batch, const Disturbance& disturbance,
                float weight, double* losses, float* lookup);

 private:
  BranchRows& KeptOf(std::size_t branch) { return kept_[branch % kept_.size()]; }
  void Embed(const Pass& pass);
  void BackwardHead(Member& member, const MicroBatch& batch, float weight, double* losses);
  void BackwardEmbedding(const Pass& pass, float* lookup);
  // Logits of up to kHeadRows rows, whose stride is padded to whole panels.
  std::size_t LogitStride() const { return (plan_.vocab + 15) / 16 * 16; }
  kernels::MatmulArgs LogitRows(const float* normed_rows);

  const NetworkPlan plan_;
  const ParameterLayout& layout_;
  Parameter token_embedding_;     // [vocab][embedding]
  Parameter position_embedding_;  // [context][embedding], if positions are learned
  BranchScratch scratch_;
  AttentionShared attention_;
  std::vector<Branch> branches_;
  // [branches], or, where they are computed again, one for attention and one for the MLP.
  std::vector<BranchRows> kept_;
  std::vector<base::AlignedArray<float>> residual_;  // [branches + 1][rows][embedding]
  NormRows norm_;
  base::AlignedArray<float> normed_;  // [rows][embedding], after the last norm
  std::vector<kernels::RowStats> stats_;
  Linear head_;
  base::AlignedArray<float> logits_;     // [kHeadRows][LogitStride()]
  base::AlignedArray<float> dresidual_;  // [rows][embedding]
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_NETWORK_H_
