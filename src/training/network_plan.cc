#include "training/network_plan.h"

#include <algorithm>
#include <span>

namespace kvasir::training {
namespace {

NetworkPlan CommonPlan(const ModelConfig& config) {
  NetworkPlan plan;
  plan.layers = config.layers();
  plan.embedding = config.embedding();
  plan.feed_forward = config.feed_forward();
  plan.context = config.context();
  plan.vocab = config.vocab();
  plan.tied_head = config.tied_head();
  plan.attention.heads = config.heads();
  plan.attention.kv_heads = config.kv_heads();
  plan.attention.head_dim = config.head_dim();
  return plan;
}

std::vector<HeadRun> RunsOf(std::span<const kvcache::HeadPolicy> heads) {
  std::vector<HeadRun> runs;
  for (std::size_t head = 0; head < heads.size(); ++head) {
    if (runs.empty() || runs.back().policy != heads[head]) runs.push_back({head, 0, heads[head]});
    ++runs.back().count;
  }
  return runs;
}

std::string Block(std::size_t layer, const char* part) {
  return "blk." + std::to_string(layer) + "." + part;
}

}  // namespace

BranchPlan NetworkPlan::AttentionBranch(std::size_t layer) const {
  // Llama's queries, keys and values are three tensors that lie side by side.
  return {.norm = Block(layer, "attn_norm"),
          .first = Block(layer, learned_positions ? "attn_qkv" : "attn_q"),
          .last = Block(layer, "attn_output"),
          .first_outputs = attention.qkv_width(),
          .last_inputs = attention.q_width()};
}

BranchPlan NetworkPlan::MlpBranch(std::size_t layer) const {
  const bool gated = mlp == MlpKind::kSwiGlu;  // Gate, then up.
  return {.norm = Block(layer, "ffn_norm"),
          .first = Block(layer, gated ? "ffn_gate" : "ffn_up"),
          .last = Block(layer, "ffn_down"),
          .first_outputs = gated ? 2 * feed_forward : feed_forward,
          .last_inputs = feed_forward};
}

std::size_t NetworkPlan::max_first_outputs() const {
  return std::max(AttentionBranch(0).first_outputs, MlpBranch(0).first_outputs);
}
std::size_t NetworkPlan::max_last_inputs() const {
  return std::max(AttentionBranch(0).last_inputs, MlpBranch(0).last_inputs);
}

NetworkPlan PlanOf(const ModelConfig& config, const kvcache::CachePolicy& policy,
                   bool exaggerates) {
  NetworkPlan plan = CommonPlan(config);
  plan.exaggerates = exaggerates;
  for (std::size_t i = 0; i < plan.layers; ++i) plan.runs.push_back(RunsOf(policy.Layer(i)));
  if (config.gpt2() != nullptr) {
    plan.learned_positions = true;
    plan.norm_eps = config.gpt2()->norm_eps;
    return plan;
  }
  const model::LlamaConfig& llama = *config.llama();
  plan.norm = NormKind::kRmsNorm;
  plan.norm_eps = llama.norm_eps;
  plan.mlp = MlpKind::kSwiGlu;
  plan.attention.rope = llama.rope;
  return plan;
}

double StepFlops(const NetworkPlan& plan) {
  const auto product = [](std::size_t n, std::size_t k) {
    return static_cast<double>(n) * static_cast<double>(k);
  };
  const auto context = static_cast<double>(plan.context);
  double matrices = product(plan.vocab, plan.embedding);
  double attention = 0;  // Multiply-adds of scores and sums over values.
  for (std::size_t layer = 0; layer < plan.layers; ++layer) {
    for (const BranchPlan& branch : {plan.AttentionBranch(layer), plan.MlpBranch(layer)}) {
      matrices += product(branch.first_outputs, plan.embedding) +
                  product(branch.last_inputs, plan.embedding);
    }
    for (const HeadRun& run : plan.runs[layer]) {
      // Of each query the positions that it sees.
      const auto window = static_cast<double>(std::min(run.window(), plan.context));
      const double visible = window * (window + 1) / 2 + (context - window) * window;
      const std::size_t group = plan.attention.heads / plan.attention.kv_heads;
      attention += 2 * visible * product(run.count * group, plan.attention.head_dim);
    }
  }
  return 3 * 2 * (context * matrices + attention);
}

}  // namespace kvasir::training
