#include "kvcache/index_speed.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/checked.h"
#include "kvcache/sequence_manager.h"

namespace kvasir::kvcache {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;
constexpr std::uint64_t kMostTokens = 1 << 22;  // In all prompts.

using Prompts = std::vector<std::vector<TokenId>>;

Prompts MakePrompts(const IndexSpeedOptions& options) {
  Prompts prompts(options.prompts);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (std::uint64_t t = 0; t < options.prompt_tokens; ++t) {
      const bool shared = t < options.prompt_tokens / 2;
      prompts[i].push_back(static_cast<TokenId>(t * 7 + (shared ? 0 : i + 1)));
    }
  }
  return prompts;
}

// Runs work once and lowers best to its time a token.
template <typename Work>
void Time(std::uint64_t tokens, double& best, const Work& work) {
  const auto start = Clock::now();
  work();
  const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
  best = std::min(best, elapsed.count() / static_cast<double>(tokens));
}

// A pass over all chains, whose result must be used.
std::uint64_t HashAll(const Prompts& prompts, std::size_t block_tokens) {
  std::uint64_t sum = 0;
  for (const std::vector<TokenId>& prompt : prompts) {
    base::Hash128 hash;
    for (std::size_t at = 0; at + block_tokens <= prompt.size(); at += block_tokens) {
      hash = ChainHash(hash, std::span(prompt).subspan(at, block_tokens));
    }
    sum += hash.low;
  }
  return sum;
}

}  // namespace

Result<IndexSpeed> MeasureIndexSpeed(const IndexSpeedOptions& options) {
  KV_TRY(const CacheGeometry geometry,
         CacheGeometry::Make(
             {.layers = 1, .kv_heads = 1, .head_dim = 1, .block_tokens = options.block_tokens}));
  const auto tokens = base::CheckedMul(options.prompts, options.prompt_tokens);
  if (options.prompt_tokens < options.block_tokens || options.prompts == 0 || !tokens ||
      *tokens > kMostTokens) {
    return MakeError(ErrorCode::kUsage,
                     "{} prompts of {} tokens cannot be measured: at least 1 prompt of a block ({} "
                     "tokens) is needed, and at most {} tokens in all",
                     options.prompts, options.prompt_tokens, options.block_tokens, kMostTokens);
  }
  const Prompts prompts = MakePrompts(options);
  const double never = std::numeric_limits<double>::max();
  IndexSpeed speed = {never, never, never};
  const std::uint64_t chains = HashAll(prompts, geometry.block_tokens());
  for (int round = 0; round < kRounds; ++round) {
    Time(*tokens, speed.hash_ns,
         [&] { KV_CHECK(HashAll(prompts, geometry.block_tokens()) == chains); });
    KV_TRY(const auto manager,
           SequenceManager::Make(geometry,
                                 {.pool = {.budget_bytes = 2 * (*tokens + kMaxBlockTokens) *
                                                           geometry.bytes_per_token()}}));
    std::vector<SequenceId> sequences;
    for (const std::vector<TokenId>& prompt : prompts) {
      sequences.push_back(manager->Create());
      KV_TRY(manager->cache(sequences.back()).Reserve(prompt.size()));
      manager->cache(sequences.back()).Advance(prompt.size());
    }
    Time(*tokens, speed.insert_ns, [&] {
      for (std::size_t i = 0; i < prompts.size(); ++i) manager->Commit(sequences[i], prompts[i]);
    });
    for (SequenceId& id : sequences) id = manager->Create();
    Time(*tokens, speed.find_ns, [&] {
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        KV_CHECK(manager->TakePrefix(sequences[i], prompts[i]) > 0);
      }
    });
  }
  return speed;
}

}  // namespace kvasir::kvcache
