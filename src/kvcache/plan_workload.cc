#include "kvcache/plan_workload.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::kvcache {

using base::ErrorCode;
using base::MakeError;
using base::Result;

Result<void> CheckWorkload(const PlanWorkload& workload, std::uint64_t window) {
  // The rules for block sizes are the cache's own.
  KV_TRY(CacheGeometry::Make(
      {.layers = 1, .kv_heads = 1, .head_dim = 1, .block_tokens = workload.block_tokens}));
  if (workload.requests.empty()) return MakeError(ErrorCode::kUsage, "there are no requests");
  for (const PlanRequests& request : workload.requests) {
    if (request.count < 1 || request.tokens < 1) {
      return MakeError(ErrorCode::kUsage, "{} requests of {} tokens: both must be at least 1",
                       request.count, request.tokens);
    }
    if (workload.shared_prefix > request.tokens) {
      return MakeError(ErrorCode::kUsage, "shared_prefix is {}, but a request has only {} tokens",
                       workload.shared_prefix, request.tokens);
    }
  }
  if (workload.shared_prefix != 0 && window != 0) {
    return MakeError(ErrorCode::kUsage,
                     "shared_prefix is {}, but a window of {} frees the blocks of a prefix: "
                     "plan one or the other",
                     workload.shared_prefix, window);
  }
  return base::Success();
}

std::optional<CacheFit> FitWorkload(const PlanWorkload& workload, std::uint64_t memory_bytes,
                                    const WorkloadFormula& bytes) {
  const WorkloadBytes asked = bytes(workload);
  const auto shared = asked.shared.value();
  const auto own = asked.own.value();
  if (!shared || !own) return std::nullopt;
  CacheFit fit;
  // A list that is all prefix takes nothing of its own: it fits as often as one likes.
  if (*shared <= memory_bytes) {
    fit.times = *own == 0 ? CacheFit::kEndless : (memory_bytes - *shared) / *own;
  }
  for (const PlanRequests& request : workload.requests) {
    if (request.tokens != workload.requests.front().tokens) return fit;
  }
  PlanWorkload longer = workload;
  const auto fits = [&](std::uint64_t tokens) {
    for (PlanRequests& request : longer.requests) request.tokens = tokens;
    longer.shared_prefix = std::min(workload.shared_prefix, tokens);
    const WorkloadBytes needed = bytes(longer);
    const auto all = (needed.shared + needed.own).value();
    return all && *all <= memory_bytes;
  };
  constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 48;
  if (fits(kMostTokens)) {
    fit.longest = CacheFit::kEndless;
    return fit;
  }
  std::uint64_t longest = 0;  // fits, or is nothing
  std::uint64_t beyond = kMostTokens;
  while (beyond - longest > 1) {
    const std::uint64_t middle = longest + (beyond - longest) / 2;
    (fits(middle) ? longest : beyond) = middle;
  }
  fit.longest = longest;
  return fit;
}

base::Error WorkloadTooLarge(std::string_view formula, const PlanWorkload& workload) {
  std::string requests;
  for (const PlanRequests& request : workload.requests) {
    if (requests.size() > 100) {
      requests += " + …";
      break;
    }
    requests += fmt::format("{}{} × {} tokens", requests.empty() ? "" : " + ", request.count,
                            request.tokens);
  }
  return MakeError(ErrorCode::kUsage,
                   "the cache is larger than 2^64 bytes: {} a token, {} in blocks of {}", formula,
                   requests, workload.block_tokens);
}

}  // namespace kvasir::kvcache
