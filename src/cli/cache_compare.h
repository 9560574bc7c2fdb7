// The evidence table of cache policies as text, JSON and picture, for `kvasir cache compare`.
#ifndef KVASIR_CLI_CACHE_COMPARE_H_
#define KVASIR_CLI_CACHE_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/cache_compare.h"
#include "eval/policy_search.h"
#include "kvcache/cache_policy.h"

namespace kvasir::cli {

struct NamedPolicy {
  std::string spec;  // As given.
  kvcache::CachePolicy policy;
};

// What was found for --search, on a part of the text that the table does not use.
struct FoundPolicy {
  std::uint64_t budget_bytes = 0;  // Of a sequence of a full context.
  std::size_t calibration_tokens = 0;
  std::vector<kvcache::HeadPolicy> settings;
  eval::PolicySearchResult result;

  const eval::PolicyCandidate& best() const { return result.candidates[result.best]; }
};

struct CacheTable {
  std::string model;
  std::uint64_t context = 0;
  std::vector<NamedPolicy> policies = {};
  eval::CacheComparison comparison = {};
  std::optional<FoundPolicy> found = std::nullopt;
};

nlohmann::ordered_json ToJson(const CacheTable& table);
void PrintText(const CacheTable& table);

// Mean divergence against bytes a token. Policies without divergence stand at the bottom, those
// without bytes are left out.
std::string DrawPolicies(const CacheTable& table);

// "SPEC|SPEC|…": the SPECs.
std::vector<std::string> SplitSpecs(const std::string& text);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_CACHE_COMPARE_H_
