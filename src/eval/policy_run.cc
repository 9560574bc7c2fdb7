#include "eval/policy_run.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

#include "base/check.h"
#include "eval/model_cache.h"
#include "eval/sequence_logits.h"
#include "eval/speed.h"

namespace kvasir::eval {
namespace {

using base::TokenId;
using kvcache::CachePolicy;

constexpr std::size_t kPlaces = 8;
constexpr std::size_t kSteps[] = {1, 3, 16, 7};
constexpr std::size_t kTimedSteps = 16;
constexpr std::size_t kPrefillTokens = 512;  // A step, which bounds its buffers.

// One sequence under a policy, and the logits of its last token.
class PolicySequence {
 public:
  static base::Result<PolicySequence> Make(const model::Model& model, const CachePolicy& policy,
                                           std::uint64_t block_tokens) {
    KV_TRY(auto pool,
           MakeModelCache(model.shape(), {.block_tokens = block_tokens, .policy = policy}));
    return PolicySequence(model, std::move(pool));
  }

  std::size_t length() const { return sequence_.length(); }
  void Reset() { sequence_.Reset(); }

  // Takes the next tokens of the text in one step.
  base::Result<void> Take(std::span<const TokenId> text, std::size_t count,
                          base::ThreadTeam& team) {
    const model::BatchItem item = {&sequence_, text.subspan(length(), count), 1};
    return model_.Forward({&item, 1}, scratch_, team, logits_);
  }
  const std::vector<float>& logits() const { return logits_; }

 private:
  PolicySequence(const model::Model& model, std::unique_ptr<kvcache::BlockPool> pool)
      : model_(model), pool_(std::move(pool)), sequence_(*pool_), logits_(model.shape().vocab) {}

  const model::Model& model_;
  std::unique_ptr<kvcache::BlockPool> pool_;
  kvcache::CachedSequence sequence_;
  model::Scratch scratch_;
  std::vector<float> logits_;
};

// Seconds of each step over [begin, end), one token a step.
base::Result<void> TimeSteps(PolicySequence& sequence, std::span<const TokenId> text,
                             std::size_t end, std::vector<double>& seconds,
                             base::ThreadTeam& team) {
  while (sequence.length() < end) {
    const Stopwatch watch;
    KV_TRY(sequence.Take(text, 1, team));
    seconds.push_back(watch.Seconds());
  }
  return base::Success();
}

}  // namespace

base::Result<OffEqualsOn> CheckPolicy(const model::Model& model, std::span<const TokenId> tokens,
                                      const CachePolicy& policy, std::uint64_t block_tokens,
                                      base::ThreadTeam& team) {
  KV_CHECK(!tokens.empty());
  KV_TRY(PolicySequence on, PolicySequence::Make(model, policy, block_tokens));
  KV_TRY(PolicySequence off, PolicySequence::Make(model, policy, block_tokens));
  OffEqualsOn result;
  std::size_t step = 0;
  for (std::size_t place = 1; place <= kPlaces; ++place) {
    const std::size_t end = tokens.size() * place / kPlaces;
    if (end == on.length()) continue;
    while (on.length() < end) {
      KV_TRY(
          on.Take(tokens, std::min(kSteps[step++ % std::size(kSteps)], end - on.length()), team));
    }
    off.Reset();
    KV_TRY(off.Take(tokens, end, team));
    KV_TRY(CheckFinite(off.logits(), end - 1));
    ++result.comparisons;
    const std::size_t bytes = on.logits().size() * sizeof(float);
    if (std::memcmp(on.logits().data(), off.logits().data(), bytes) != 0) ++result.mismatches;
  }
  return result;
}

base::Result<std::vector<DecodeTimes>> TimePolicies(const model::Model& model,
                                                    std::span<const TokenId> tokens,
                                                    std::span<const CachePolicy> policies,
                                                    const DecodeTimeOptions& options,
                                                    base::ThreadTeam& team) {
  KV_CHECK(tokens.size() >= 2 && options.repetitions >= 1);
  const std::size_t timed = std::min(kTimedSteps, tokens.size() / 2);
  struct Times {
    std::vector<double> start, end;
  };
  std::vector<Times> times(policies.size());
  const Stopwatch watch;
  for (std::uint64_t repetition = 0; repetition < options.repetitions; ++repetition) {
    if (repetition > 0 && watch.Seconds() > options.seconds) break;
    for (std::size_t i = 0; i < policies.size(); ++i) {
      KV_TRY(PolicySequence sequence,
             PolicySequence::Make(model, policies[i], options.block_tokens));
      KV_TRY(TimeSteps(sequence, tokens, timed, times[i].start, team));
      const std::size_t last = tokens.size() - timed;
      while (sequence.length() < last) {
        KV_TRY(sequence.Take(tokens, std::min(kPrefillTokens, last - sequence.length()), team));
      }
      KV_TRY(TimeSteps(sequence, tokens, tokens.size(), times[i].end, team));
    }
  }
  std::vector<DecodeTimes> medians;
  for (const Times& policy : times) {
    medians.push_back({.start = Median(policy.start), .end = Median(policy.end)});
  }
  return medians;
}

}  // namespace kvasir::eval
