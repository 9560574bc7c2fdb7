#include "eval/policy_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "eval/knapsack.h"

namespace kvasir::eval {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using kvcache::CachePolicy;
using kvcache::HeadPolicy;

class Search {
 public:
  Search(const PolicySearchOptions& options, const PolicyWorld& world)
      : options_(options), world_(world) {}

  Result<PolicySearchResult> Run() {
    PolicySearchResult result;
    KV_TRY(full_bytes_, world_.bytes(Policy({})));
    for (const HeadPolicy& setting : options_.settings) {
      KV_TRY(Consider("everywhere", Policy(std::vector(Heads(), setting)), result));
    }
    const bool by_head = options_.kv_heads > 1 && Heads() <= options_.most_heads;
    for (const std::uint64_t width : {options_.kv_heads, std::uint64_t{1}}) {
      if (width == 1 && !by_head && options_.kv_heads > 1) continue;
      KV_TRY(const auto losses, UnitLosses(width));
      KV_TRY(const auto chosen, ChooseUnits(width, losses));
      if (chosen) {
        KV_TRY(Consider(width == options_.kv_heads ? "by layer" : "by head", *chosen, result));
      }
      if (width == options_.kv_heads) result.layer_kl = losses;
      if (options_.kv_heads == 1) break;
    }
    if (result.candidates.empty()) return TooSmall();
    return Measured(std::move(result));
  }

 private:
  std::uint64_t Heads() const { return options_.layers * options_.kv_heads; }

  // Full and f32 but for these first heads.
  CachePolicy Policy(std::vector<HeadPolicy> heads) const {
    heads.resize(Heads());
    return CachePolicy::Of(options_.layers, options_.kv_heads, std::move(heads));
  }

  // A unit is `width` heads of one layer: all of them, or one.
  CachePolicy WithUnit(std::uint64_t unit, std::uint64_t width, const HeadPolicy& setting) const {
    std::vector<HeadPolicy> heads(Heads());
    std::fill_n(heads.begin() + static_cast<std::ptrdiff_t>(unit * width), width, setting);
    return Policy(std::move(heads));
  }

  Result<std::vector<std::vector<double>>> UnitLosses(std::uint64_t width) const {
    std::vector<CachePolicy> policies;
    for (std::uint64_t unit = 0; unit < Heads() / width; ++unit) {
      for (const HeadPolicy& setting : options_.settings) {
        policies.push_back(WithUnit(unit, width, setting));
      }
    }
    KV_TRY(const std::vector<double> measured, world_.measure(policies));
    KV_CHECK(measured.size() == policies.size());
    std::vector<std::vector<double>> losses(Heads() / width);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      losses[i / options_.settings.size()].push_back(measured[i]);
    }
    return losses;
  }

  // Nothing if nothing fits.
  Result<std::optional<CachePolicy>> ChooseUnits(
      std::uint64_t width, const std::vector<std::vector<double>>& losses) const {
    const std::uint64_t units = Heads() / width;
    std::vector<std::vector<KnapsackChoice>> items(units);
    for (std::uint64_t unit = 0; unit < units; ++unit) {
      // Bytes of parts add up, so a unit's are the whole's less all other units' full ones.
      const std::uint64_t others = full_bytes_ - full_bytes_ / units;
      for (std::size_t i = 0; i < options_.settings.size(); ++i) {
        KV_TRY(const std::uint64_t bytes,
               world_.bytes(WithUnit(unit, width, options_.settings[i])));
        items[unit].push_back({bytes - std::min(bytes, others), losses[unit][i]});
      }
    }
    const auto chosen = ChooseWithin(items, options_.budget_bytes);
    if (!chosen) return std::optional<CachePolicy>();
    std::vector<HeadPolicy> heads;
    for (const std::size_t choice : *chosen) {
      heads.insert(heads.end(), width, options_.settings[choice]);
    }
    return std::optional(Policy(std::move(heads)));
  }

  // Takes in what fits and is not there yet.
  Result<void> Consider(std::string how, const CachePolicy& policy, PolicySearchResult& result) {
    KV_TRY(const std::uint64_t bytes, world_.bytes(policy));
    least_bytes_ = std::min(least_bytes_, bytes);
    if (bytes > options_.budget_bytes) return base::Success();
    for (const PolicyCandidate& known : result.candidates) {
      if (known.policy == policy) return base::Success();
    }
    result.candidates.push_back({std::move(how), policy, bytes, 0});
    return base::Success();
  }

  base::Error TooSmall() const {
    return MakeError(ErrorCode::kUsage,
                     "a budget of {} bytes is too small: the smallest of the settings tried takes "
                     "{}",
                     options_.budget_bytes, least_bytes_);
  }

  Result<PolicySearchResult> Measured(PolicySearchResult result) const {
    std::vector<CachePolicy> policies;
    for (const PolicyCandidate& candidate : result.candidates) policies.push_back(candidate.policy);
    KV_TRY(const std::vector<double> measured, world_.measure(policies));
    KV_CHECK(measured.size() == policies.size());
    for (std::size_t i = 0; i < measured.size(); ++i) {
      PolicyCandidate& candidate = result.candidates[i];
      candidate.kl = measured[i];
      const PolicyCandidate& best = result.candidates[result.best];
      if (std::pair(candidate.kl, candidate.bytes) < std::pair(best.kl, best.bytes)) {
        result.best = i;
      }
    }
    return result;
  }

  const PolicySearchOptions& options_;
  const PolicyWorld& world_;
  std::uint64_t full_bytes_ = 0;
  std::uint64_t least_bytes_ = ~std::uint64_t{0};
};

}  // namespace

Result<PolicySearchResult> SearchPolicy(const PolicySearchOptions& options,
                                        const PolicyWorld& world) {
  KV_CHECK(options.layers >= 1 && options.kv_heads >= 1 && !options.settings.empty());
  return Search(options, world).Run();
}

}  // namespace kvasir::eval
