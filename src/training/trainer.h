// Training: steps over shards of a batch, evaluation on held-out text, state that resumes exactly.
#ifndef KVASIR_TRAINING_TRAINER_H_
#define KVASIR_TRAINING_TRAINER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/env.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "model/tensor_spec.h"
#include "training/best_model.h"
#include "training/model_config.h"
#include "training/network.h"
#include "training/options.h"
#include "training/parameters.h"
#include "training/peers.h"
#include "training/windows.h"

namespace kvasir::training {

struct StepReport {
  std::uint64_t step = 0;    // From 1: steps done.
  double loss = 0;           // Mean nats per token of the batch, before the update.
  double gradient_norm = 0;  // Before clipping.
  double learning_rate = 0;
};

struct Evaluation {
  std::uint64_t tokens = 0;
  double nll = 0;  // Mean nats per predicted token.
};

// Owns parameters, optimiser state and buffers. Single-threaded; uses the team it is given. The
// bits of every step are a function of config, options and text alone: not of threads or
// micro-batches.
class Trainer {
 public:
  // kUsage for options, kBadData for a text not longer than the context (both numbers named) or a
  // token outside the vocabulary. Text and team must outlive the trainer.
  static base::Result<std::unique_ptr<Trainer>> Make(const ModelConfig& config,
                                                     const TrainOptions& options,
                                                     std::span<const TokenId> text,
                                                     base::ThreadTeam& team);

  // Shares every step with other processes, which must make the same calls on trainers of the same
  // arguments and state: each computes the gradients of its own shards. The bits are those of one
  // alone. The peers must outlive the trainer. kUsage for more of them than shards.
  base::Result<void> Join(Peers& peers);
  Peers* peers() const { return peers_; }  // Null: alone.

  // One step. kNumeric, naming the step, if loss or gradient is not finite, kIo if a peer
  // is lost: nothing has changed.
  base::Result<StepReport> Step();
  std::uint64_t steps_done() const { return steps_done_; }

  // Windows of the context from the start of text, every token but the first predicted once, as
  // `eval` counts. No dropout, no influence on training. Requires at least 2 tokens.
  Evaluation Evaluate(std::span<const TokenId> text);

  // Logits of every position of one sequence of at most `context` tokens: [tokens][vocab].
  std::vector<float> Logits(std::span<const TokenId> tokens);

  // The gradient and loss of the next step without taking it: for tests.
  base::Result<double> Gradient(std::vector<float>& gradient);

  const ModelConfig& config() const { return config_; }
  const TrainOptions& options() const { return options_; }
  const ParameterLayout& layout() const { return layout_; }
  std::span<float> parameters() { return parameters_.span(); }
  // After parameters were changed from outside.
  void ParametersChanged() { packed_ = false; }
  model::TensorSource Source() const;  // The parameters, tensor by tensor, for Save and MakeModel.
  // The same of any flat array of the layout, which must outlive the source.
  model::TensorSource Source(std::span<const float> flat) const;

  // Everything a resumed run needs, written whole or not at all: parameters, moments, steps done,
  // the best model so far, and the settings they belong to.
  base::Result<void> SaveCheckpoint(base::Env& env, const std::string& path,
                                    const BestModel& best) const;
  // Fills `best` too, whose held-out text and interval must be those of the run that is resumed.
  // kBadData naming the difference if the checkpoint is damaged or of another config, options
  // (other than threads, micro-batch and steps), text or held-out text; nothing has changed then.
  base::Result<void> LoadCheckpoint(base::Env& env, const std::string& path, BestModel& best);

 private:
  Trainer(const ModelConfig& config, NetworkPlan plan, const TrainOptions& options,
          std::span<const TokenId> text, WindowOrder order, base::ThreadTeam& team);
  void EnsurePacked(Member& member);
  // Gradient of the step's mean loss into total_; the loss sum (f64, rows ascending).
  base::Result<double> AccumulateGradients();
  base::IndexRange ShardsOf(std::size_t rank) const;
  // Adds the peers' shards to total_, in order, and takes their losses.
  base::Result<void> ShareGradients();
  void RunShard(Member& member, base::IndexRange sequences);
  double GradientNorm();
  void Update(double gradient_norm);
  std::uint64_t Fingerprint() const;

  const ModelConfig config_;
  const TrainOptions options_;
  const ParameterLayout layout_;
  std::span<const TokenId> text_;
  WindowOrder order_;
  base::ThreadTeam& team_;
  Network network_;
  Peers* peers_ = nullptr;
  std::vector<base::AlignedArray<float>> own_gradients_;  // Of each own shard; not of rank 0.
  std::uint64_t steps_done_ = 0;
  bool packed_ = false;
  base::AlignedArray<float> parameters_, first_moment_, second_moment_;
  base::AlignedArray<float> shard_gradient_, total_gradient_;  // flat
  base::AlignedArray<float> shard_lookup_;                     // [vocab][embedding], tied head only
  std::vector<std::size_t> starts_;                            // [batch] windows of the step
  std::vector<double> losses_;                                 // [batch · context] of the step
  std::vector<double> chunk_sums_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_TRAINER_H_
