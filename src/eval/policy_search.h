// A cache policy under a byte budget, found by measuring how much each layer, and each head, minds
// each setting.
#ifndef KVASIR_EVAL_POLICY_SEARCH_H_
#define KVASIR_EVAL_POLICY_SEARCH_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kvcache/cache_policy.h"

namespace kvasir::eval {

// What the search asks of the world.
struct PolicyWorld {
  // Mean KL(full ‖ policy) of each on the calibration text.
  std::function<base::Result<std::vector<double>>(std::span<const kvcache::CachePolicy>)> measure;
  // What is to stay within the budget.
  std::function<base::Result<std::uint64_t>(const kvcache::CachePolicy&)> bytes;
};

struct PolicySearchOptions {
  std::uint64_t layers = 0;
  std::uint64_t kv_heads = 0;
  std::vector<kvcache::HeadPolicy> settings;  // To choose from; at least one. None that
                                              // only whole layers can have.
  std::uint64_t budget_bytes = 0;
  // Heads are looked at one by one in models of at most so many (layers · kv_heads).
  std::uint64_t most_heads = 64;
};

// What was measured as a whole, on the calibration text.
struct PolicyCandidate {
  std::string how;  // "everywhere", "by layer", "by head"
  kvcache::CachePolicy policy;
  std::uint64_t bytes = 0;
  double kl = 0;
};

struct PolicySearchResult {
  std::vector<std::vector<double>> layer_kl;  // [layers][settings]: of that layer alone.
  std::vector<PolicyCandidate> candidates;    // All that fit.
  std::size_t best = 0;                       // Of these, the one with the least divergence.
};

// 1. Each setting is put into each layer alone, all else full in f32, and the divergence measured.
// 2. As if divergences added up, the choice of one setting a layer with the least sum that fits the
//    budget (ChooseWithin). In small models the same for each head.
// 3. These maps, and every setting everywhere, are measured as a whole, and the best one taken: so
//    it is never worse, on the calibration text, than one setting for all.
// kUsage naming the budget and the least possible bytes if nothing fits; any error of the world's.
base::Result<PolicySearchResult> SearchPolicy(const PolicySearchOptions& options,
                                              const PolicyWorld& world);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_POLICY_SEARCH_H_
