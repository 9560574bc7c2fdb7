#include "eval/paging_cost.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "base/check.h"
#include "eval/random_stream.h"
#include "eval/speed.h"
#include "kvcache/block_pool.h"

namespace kvasir::eval {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;

constexpr std::size_t kPrefillTokens = 512;  // A step, which bounds its buffers.
constexpr std::size_t kTimedSteps = 32;      // Two blocks of the smallest size.

// A text whose last positions are decoded over and over.
class Decoding {
 public:
  // A cache for so many tokens whose free blocks lie in random order.
  static base::Result<std::unique_ptr<Decoding>> Make(const model::Model& model,
                                                      std::span<const TokenId> text,
                                                      const kvcache::CacheGeometry& geometry) {
    const std::uint64_t blocks = geometry.BlocksFor(text.size());
    KV_TRY(auto pool,
           kvcache::BlockPool::Make(geometry, {.budget_bytes = blocks * geometry.block_bytes()}));
    std::vector<kvcache::BlockId> all;
    for (std::uint64_t i = 0; i < blocks; ++i) {
      auto block = pool->Allocate();
      if (!block) break;
      all.push_back(block.value());
    }
    const bool enough = all.size() == blocks;
    RandomStream(/*seed=*/1).Shuffle(all);
    for (const kvcache::BlockId block : all) pool->Release(block);
    if (!enough) {
      return MakeError(ErrorCode::kExhausted, "the machine has no memory for a cache of {} blocks",
                       blocks);
    }
    return std::unique_ptr<Decoding>(new Decoding(model, text, std::move(pool)));
  }

  base::Result<void> Prefill(base::ThreadTeam& team) {
    while (cache_.length() < begin()) {
      const std::size_t count = std::min(begin() - cache_.length(), kPrefillTokens);
      const model::BatchItem item = {&cache_, text_.subspan(cache_.length(), count), 0};
      KV_TRY(model_.Forward({&item, 1}, scratch_, team, {}));
    }
    return base::Success();
  }

  // Decodes the last positions and drops them again. Seconds.
  base::Result<double> Run(base::ThreadTeam& team) {
    const Stopwatch watch;
    for (std::size_t i = begin(); i < text_.size(); ++i) {
      const model::BatchItem item = {&cache_, text_.subspan(i, 1), 1};
      KV_TRY(model_.Forward({&item, 1}, scratch_, team, logits_));
    }
    cache_.Truncate(begin());
    return watch.Seconds();
  }

  std::size_t steps() const { return text_.size() - begin(); }
  std::uint64_t block_tokens() const { return pool_->geometry().block_tokens(); }
  const std::vector<float>& logits() const { return logits_; }  // Of the last position.

 private:
  Decoding(const model::Model& model, std::span<const TokenId> text,
           std::unique_ptr<kvcache::BlockPool> pool)
      : model_(model),
        text_(text),
        pool_(std::move(pool)),
        cache_(*pool_),
        logits_(model.shape().vocab) {}

  // At least one position is cached before, at least one is timed.
  std::size_t begin() const { return text_.size() - std::min(kTimedSteps, text_.size() - 1); }

  const model::Model& model_;
  const std::span<const TokenId> text_;
  std::unique_ptr<kvcache::BlockPool> pool_;
  kvcache::CachedSequence cache_;
  model::Scratch scratch_;
  std::vector<float> logits_;  // [vocab]
};

base::Result<std::vector<std::unique_ptr<Decoding>>> MakeAll(const model::Model& model,
                                                             const PagingCostOptions& options,
                                                             std::span<const TokenId> text) {
  kvcache::CacheGeometryOptions contiguous = model.shape().Cache((text.size() + 15) / 16 * 16);
  contiguous.max_block_tokens = contiguous.block_tokens;
  std::vector<kvcache::CacheGeometryOptions> geometries = {contiguous};
  for (const std::uint64_t block_tokens : options.block_tokens) {
    geometries.push_back(model.shape().Cache(block_tokens));
  }
  std::vector<std::unique_ptr<Decoding>> all;
  for (const kvcache::CacheGeometryOptions& wanted : geometries) {
    KV_TRY(const auto geometry, kvcache::CacheGeometry::Make(wanted));
    KV_TRY(auto decoding, Decoding::Make(model, text, geometry));
    all.push_back(std::move(decoding));
  }
  return all;
}

}  // namespace

base::Result<std::vector<PagingCost>> MeasurePagingCost(const model::Model& model,
                                                        const PagingCostOptions& options,
                                                        base::ThreadTeam& team) {
  KV_CHECK(options.repetitions >= 1);
  if (options.tokens < 2 || options.tokens > model.shape().context) {
    return MakeError(ErrorCode::kUsage, "{} tokens cannot be measured: 2 to {}, the context",
                     options.tokens, model.shape().context);
  }
  RandomStream random(/*seed=*/2);
  std::vector<TokenId> text(options.tokens);
  for (TokenId& token : text) token = static_cast<TokenId>(random.Below(model.shape().vocab));
  KV_TRY(const auto all, MakeAll(model, options, text));
  for (const auto& decoding : all) {
    KV_TRY(decoding->Prefill(team));
    KV_TRY(decoding->Run(team));
    if (std::memcmp(decoding->logits().data(), all.front()->logits().data(),
                    model.shape().vocab * sizeof(float)) != 0) {
      return MakeError(ErrorCode::kNumeric,
                       "blocks of {} tokens give other logits than one block: not timed",
                       decoding->block_tokens());
    }
  }
  std::vector<std::vector<double>> seconds(all.size());
  for (std::uint64_t i = 0; i < options.repetitions; ++i) {
    for (std::size_t turn = 0; turn < all.size(); ++turn) {
      const std::size_t next = (turn + i) % all.size();  // Each begins a round as often.
      KV_TRY(const double run, all[next]->Run(team));
      seconds[next].push_back(run);
    }
  }
  std::vector<PagingCost> costs;
  for (std::size_t k = 0; k < all.size(); ++k) {
    std::vector<double> ratios;
    for (std::uint64_t i = 0; i < options.repetitions; ++i) {
      ratios.push_back(seconds[k][i] / seconds[0][i]);
    }
    const double waste = static_cast<double>(all[k]->block_tokens() - 1) / 2;
    costs.push_back({.block_tokens = all[k]->block_tokens(),
                     .ms_per_step = Median(seconds[k]) * 1e3 / static_cast<double>(all[k]->steps()),
                     .ratio = Median(ratios),
                     .waste = waste / (waste + static_cast<double>(options.tokens))});
  }
  return costs;
}

}  // namespace kvasir::eval
