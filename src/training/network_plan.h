// What a network is made of: one description for every architecture, which the network is built
// from and its memory and work are counted from.
#ifndef KVASIR_TRAINING_NETWORK_PLAN_H_
#define KVASIR_TRAINING_NETWORK_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kvcache/cache_policy.h"
#include "model/rope_settings.h"
#include "training/model_config.h"

namespace kvasir::training {

enum class NormKind { kLayerNorm, kRmsNorm };
enum class MlpKind { kGelu, kSwiGlu };

// One of the two parts of a layer: it reads the normed residual stream through a first product,
// does something of its own, and adds the last product to the stream.
struct BranchPlan {
  std::string norm;         // Names of tensors, without ".weight" and ".bias".
  std::string first, last;  // Of a product of several tensors the first one's.
  std::size_t first_outputs = 0;
  std::size_t last_inputs = 0;
};

struct AttentionPlan {
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  std::optional<model::RopeSettings> rope;  // None: positions are learned.
  std::size_t q_width() const { return heads * head_dim; }
  std::size_t kv_width() const { return kv_heads * head_dim; }
  std::size_t qkv_width() const { return q_width() + 2 * kv_width(); }
};

// Consecutive kv heads of a layer whose keys and values are treated alike.
struct HeadRun {
  std::size_t first = 0;
  std::size_t count = 0;
  kvcache::HeadPolicy policy;

  std::size_t window() const {  // Positions that a query sees; kNoWindow: all.
    return policy.window == 0 ? kernels::kNoWindow : policy.window;
  }
  // Whether what queries read may differ from what was stored.
  bool rounds() const {
    return policy.k != kernels::KvType::kF32 || policy.v != kernels::KvType::kF32;
  }
  bool has_groups() const { return policy.k == kernels::KvType::kInt4Channel; }
};

struct NetworkPlan {
  std::size_t layers = 0;
  std::size_t embedding = 0;
  std::size_t feed_forward = 0;
  std::size_t context = 0;
  std::size_t vocab = 0;
  bool learned_positions = false;
  bool tied_head = false;
  NormKind norm = NormKind::kLayerNorm;
  float norm_eps = 0;
  AttentionPlan attention;
  MlpKind mlp = MlpKind::kGelu;
  std::vector<std::vector<HeadRun>> runs;  // [layers]: all kv heads, ascending
  bool exaggerates = false;  // Some passes multiply rounding errors (Disturbance::kv_error).

  // Branches in the order in which the residual stream meets them: attention, MLP, attention, ….
  std::size_t branches() const { return 2 * layers; }
  BranchPlan AttentionBranch(std::size_t layer) const;
  BranchPlan MlpBranch(std::size_t layer) const;
  template <typename Predicate>
  bool AnyRun(const Predicate& holds) const {
    for (const std::vector<HeadRun>& layer : runs) {
      if (std::any_of(layer.begin(), layer.end(), holds)) return true;
    }
    return false;
  }
  std::size_t max_first_outputs() const;
  std::size_t max_last_inputs() const;
};

// Requires a config that passed Check, and its policy from TrainedPolicy.
NetworkPlan PlanOf(const ModelConfig& config, const kvcache::CachePolicy& policy,
                   bool exaggerates = false);

// Floating-point operations of one step's matrices and attention for one sequence over the whole
// context, a fused multiply-add counted as two: forward and, twice that, backward.
double StepFlops(const NetworkPlan& plan);

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_NETWORK_PLAN_H_
