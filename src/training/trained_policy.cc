#include "training/trained_policy.h"

namespace kvasir::training {

base::Result<kvcache::CachePolicy> TrainedPolicy(const ModelConfig& config, std::string_view spec) {
  auto policy = kvcache::CachePolicy::Full(config.layers(), config.kv_heads());
  if (!spec.empty()) {
    KV_TRY(policy, kvcache::CachePolicy::Parse(spec, {.layers = config.layers(),
                                                      .kv_heads = config.kv_heads(),
                                                      .head_dim = config.head_dim(),
                                                      .rotary = config.llama() != nullptr}));
  }
  for (std::uint64_t layer = 0; layer < policy.layers(); ++layer) {
    for (const kvcache::HeadPolicy& head : policy.Layer(layer)) {
      if (head.sinks == 0) continue;
      return base::MakeError(base::ErrorCode::kUsage,
                             "--kv '{}': sinks={} cannot be trained for; allowed are types, "
                             "group, rotate and window",
                             spec, head.sinks);
    }
  }
  if (config.llama() != nullptr && !config.llama()->windows.empty()) {
    policy.LimitWindows(config.llama()->windows);
  }
  return policy;
}

}  // namespace kvasir::training
