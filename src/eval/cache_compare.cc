#include "eval/cache_compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/policy_evidence.h"
#include "kvcache/cache_geometry.h"

namespace kvasir::eval {
namespace {

using base::Result;
using kvcache::CachePolicy;

Result<PolicyPrice> BytesOf(const model::ModelShape& shape, const CachePolicy& policy,
                            std::uint64_t block_tokens) {
  const auto per_token = [&](std::uint64_t length) -> Result<double> {
    KV_TRY(const std::uint64_t bytes, PolicyBytes(shape, policy, block_tokens, length));
    return static_cast<double>(bytes) / static_cast<double>(length);
  };
  PolicyPrice price;
  KV_TRY(price.bytes_per_token, per_token(shape.context));
  KV_TRY(price.bytes_per_token_128, per_token(128));
  KV_TRY(price.bytes_per_token_512, per_token(512));
  return price;
}

}  // namespace

Result<std::uint64_t> PolicyBytes(const model::ModelShape& shape, const CachePolicy& policy,
                                  std::uint64_t block_tokens, std::uint64_t length) {
  KV_TRY(const auto geometry, kvcache::CacheGeometry::Make(shape.Cache(block_tokens, policy)));
  return geometry.HeldBytes(length);
}

Result<CacheComparison> ComparePolicies(const model::Model& model,
                                        std::span<const base::TokenId> tokens,
                                        std::span<const CachePolicy> policies,
                                        const CacheCompareOptions& options,
                                        base::ThreadTeam& team) {
  const std::uint64_t block_tokens = options.arrangement.block_tokens;
  CacheComparison result;
  for (const CachePolicy& policy : policies) {
    KV_TRY(const PolicyPrice price, BytesOf(model.shape(), policy, block_tokens));
    result.policies.push_back(price);
  }
  KV_TRY(const PolicyEvidence evidence,
         EvaluatePolicies(model, tokens, policies, options.arrangement, team));
  result.full = evidence.full;
  const auto first = tokens.first(std::min<std::size_t>(tokens.size(), model.shape().context));
  KV_TRY(const auto times, TimePolicies(model, first, policies,
                                        {.block_tokens = block_tokens,
                                         .repetitions = options.repetitions,
                                         .seconds = options.seconds},
                                        team));
  for (std::size_t i = 0; i < policies.size(); ++i) {
    PolicyPrice& price = result.policies[i];
    price.evidence = evidence.policies[i];
    price.perplexity_change = 100 * (price.evidence.perplexity / result.full.perplexity - 1);
    price.tokens_per_s_start = 1 / times[i].start;
    price.tokens_per_s_end = 1 / times[i].end;
    KV_TRY(price.check, CheckPolicy(model, first, policies[i], block_tokens, team));
  }
  return result;
}

std::vector<std::string> DefaultPolicies(const model::ModelShape& shape) {
  if (shape.latent_dim != 0) return {"full"};
  const std::uint64_t window = std::max<std::uint64_t>(1, shape.context / 2);
  std::vector<std::string> policies = {
      "full",
      "dtype=f16",
      "dtype=bf16",
      "dtype=int8",
      "dtype=int4",
      "k=int4,group=32,v=int8",
      "k=int4,group=32,v=int4",
      "dtype=int8,rotate",
      "dtype=int4,rotate",
      fmt::format("window={},sinks={}", window, std::min<std::uint64_t>(4, window)),
      "store=hidden",
      "store=none",
  };
  if (shape.layers > 1) {
    policies.push_back(
        fmt::format("dtype=int8;{}-{}:dtype=int4", shape.layers / 2, shape.layers - 1));
  }
  if (shape.kv_heads > 1) {
    policies.push_back(fmt::format("dtype=int8;0-{}.0:window={}", shape.layers - 1, window));
  }
  return policies;
}

}  // namespace kvasir::eval
