#include "training/memory.h"

#include <algorithm>
#include <initializer_list>

#include "base/check.h"
#include "base/checked.h"
#include "base/token_id.h"
#include "kernels/norm.h"
#include "training/network.h"
#include "training/trained_policy.h"

namespace kvasir::training {
namespace {

constexpr std::uint64_t kFloat = sizeof(float);
constexpr std::uint64_t kPanel = 16;        // Outputs a panel of kernels::PackedMatrix.
constexpr std::uint64_t kNormChunk = 4096;  // Of the gradient norm's partial sums (trainer.cc).

// A sum of products in checked arithmetic.
class ByteSum {
 public:
  void Add(std::initializer_list<std::uint64_t> factors) {
    const auto product = base::CheckedProduct(factors);
    total_ = total_ && product ? base::CheckedAdd(*total_, *product) : std::nullopt;
  }
  std::optional<std::uint64_t> total() const { return total_; }

 private:
  std::optional<std::uint64_t> total_ = 0;
};

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

// A matrix packed for products, and its transpose.
void AddBothPacked(ByteSum& sum, std::uint64_t count, std::uint64_t n, std::uint64_t k) {
  sum.Add({count, RoundUp(n, kPanel), k, kFloat});
  sum.Add({count, RoundUp(k, kPanel), n, kFloat});
}

// Both branches of every layer.
template <typename Visit>
void VisitBranches(const NetworkPlan& plan, const Visit& visit) {
  for (std::size_t layer = 0; layer < plan.layers; ++layer) {
    visit(plan.AttentionBranch(layer));
    visit(plan.MlpBranch(layer));
  }
}

void AddWeights(ByteSum& sum, const ModelConfig& config, const NetworkPlan& plan,
                const MemoryUse& use) {
  const std::uint64_t parameters = config.ParameterCount();
  const std::uint64_t best = use.held_out ? 1 : 0;
  // Weights, two moments, the gradients of a shard and of the step; the best model.
  sum.Add({5 + best, parameters, kFloat});
  // While a file is written: the checkpoint's bytes, or the model's tensors and their bytes.
  sum.Add({std::max<std::uint64_t>(2, use.checkpoints ? 3 + best : 0), parameters, kFloat});
  if (plan.tied_head) sum.Add({plan.vocab, plan.embedding, kFloat});  // Look-ups' gradients.
  VisitBranches(plan, [&](const BranchPlan& branch) {
    AddBothPacked(sum, 1, branch.first_outputs, plan.embedding);
    AddBothPacked(sum, 1, plan.embedding, branch.last_inputs);
  });
  AddBothPacked(sum, 1, plan.vocab, plan.embedding);
  sum.Add({parameters / kNormChunk + 1, sizeof(double)});
}

void AddActivations(ByteSum& sum, const NetworkPlan& plan, std::uint64_t sequences,
                    bool recompute) {
  const std::uint64_t width = plan.embedding;
  const std::uint64_t rows = sequences * plan.context;
  const std::uint64_t kept_layers = recompute ? 1 : plan.layers;
  for (const BranchPlan& branch : {plan.AttentionBranch(0), plan.MlpBranch(0)}) {  // BranchRows
    sum.Add({kept_layers, rows, width + branch.first_outputs + branch.last_inputs, kFloat});
    sum.Add({kept_layers, rows, sizeof(kernels::RowStats)});
  }
  sum.Add({plan.branches() + 1, rows, width, kFloat});  // The residual stream.
  sum.Add({rows, 2 * width, kFloat});                   // The last norm; the stream's gradient.
  sum.Add({rows, sizeof(kernels::RowStats)});
  const std::uint64_t first = plan.max_first_outputs(), last = plan.max_last_inputs();
  sum.Add({rows, 3 * width + first + last, kFloat});  // BranchScratch
  sum.Add({rows, RoundUp(last, kPanel) + RoundUp(width, kPanel), kFloat});
  sum.Add({std::min<std::uint64_t>(rows, Network::kHeadRows), RoundUp(plan.vocab, kPanel), kFloat});
}

void AddAttention(ByteSum& sum, const NetworkPlan& plan, std::uint64_t sequences,
                  std::uint64_t threads) {
  // Of the layer that takes most, one sequence's keys and values.
  sum.Add({sequences, AttentionShared::KvBytes(plan, 1)});
  if (plan.exaggerates) sum.Add({AttentionShared::ExaggeratedBytes(plan, 1), sequences});
  if (plan.attention.rope) {
    sum.Add({RotaryTurns::Floats(*plan.attention.rope, plan.context), kFloat});
  }
  sum.Add({AttentionShared::Workers(plan, sequences, threads),
           AttentionGrad::Floats(plan, plan.context), kFloat});
}

}  // namespace

std::optional<std::uint64_t> TrainingBytes(const ModelConfig& config, const TrainOptions& options,
                                           const MemoryUse& use) {
  const auto policy = TrainedPolicy(config, options.kv);
  KV_CHECK(policy.has_value());
  const NetworkPlan plan = PlanOf(config, policy.value(), options.kv_error != 1);
  const std::uint64_t sequences = std::min(options.micro_batch, options.batch);
  ByteSum sum;
  AddWeights(sum, config, plan, use);
  AddActivations(sum, plan, sequences, options.recompute);
  AddAttention(sum, plan, sequences, use.threads);
  sum.Add({options.batch, plan.context, sizeof(double)});  // Losses of the step.
  sum.Add({use.text_tokens, sizeof(base::TokenId)});
  sum.Add({use.text_tokens / plan.context + 1, sizeof(std::uint64_t)});  // The windows' order.
  return sum.total();
}

}  // namespace kvasir::training
