// A planned cache as JSON and as text, for `kvasir cache plan`.
#ifndef KVASIR_CLI_CACHE_PLAN_H_
#define KVASIR_CLI_CACHE_PLAN_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kvcache/cache_plan.h"
#include "kvcache/cache_policy.h"

namespace kvasir::cli {

// What is to be planned.
struct PlannedModel {
  std::string name;  // Of the preset or file; empty: sizes given as flags.
  kvcache::PlanShape shape;
  kvcache::PlanDType dtype = kvcache::PlanDType::kF32;  // Unless another is asked for.
  std::uint64_t context = 0;
  std::vector<std::uint64_t> windows = {};  // [layers]: its own, 0: none; empty: none at all
  bool rotary = false;      // Known to be; else what learned positions allow may be planned.
  std::string_view source;  // Where a preset's sizes are given, and what may surprise.
  std::string_view note;
};

struct CacheQuestion {
  PlannedModel model;
  kvcache::PlanPolicy policy;
  std::optional<kvcache::CachePolicy> kv;  // Of --kv: by layer and head, instead of `policy`.
  kvcache::PlanWorkload workload;
  std::optional<std::uint64_t> memory_bytes;
  double gb_per_s = 0;    // 10^9 bytes a second
  bool measured = false;  // Whether that is this machine's rate.
};

// One cell of the trade-off between batch, length and type.
struct TradeoffCell {
  std::uint64_t batch = 0;
  std::uint64_t tokens = 0;  // each
  kvcache::PlanDType dtype = kvcache::PlanDType::kF32;
  // Both are absent where the cache would take more than 2^64 bytes.
  std::optional<std::uint64_t> bytes;
  std::optional<double> ms_per_step;  // To read it once: every sequence gets one token.
};

struct CacheAnswer {
  kvcache::CachePlan plan;
  std::optional<kvcache::CacheFit> fit;  // If there is a memory.
  double ms_per_step = 0;
  std::vector<TradeoffCell> tradeoff;  // By batch, then length, then type; none with --kv.
};

base::Result<CacheAnswer> AnswerCacheQuestion(const CacheQuestion& question);

nlohmann::ordered_json ToJson(const CacheQuestion& question, const CacheAnswer& answer);
void PrintText(const CacheQuestion& question, const CacheAnswer& answer);

// "8x512,2x4096": how many requests of how many tokens; a number alone is one request. kUsage
// naming the part that is not of this form.
base::Result<std::vector<kvcache::PlanRequests>> ParseRequests(std::string_view text);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_CACHE_PLAN_H_
