#include "eval/attention_speed.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "eval/model_cache.h"
#include "eval/model_work.h"
#include "eval/random_stream.h"
#include "eval/speed.h"

namespace kvasir::eval {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;

constexpr std::size_t kChunk = 256;  // Tokens a step of the prefill that leads up to a length.

// One variant's model and its growing text.
class Run {
 public:
  static base::Result<std::unique_ptr<Run>> Make(const AttentionVariant& variant,
                                                 std::uint64_t longest) {
    auto run = std::unique_ptr<Run>(new Run(variant, longest));
    // Two sequences: that of the steps, and the check's.
    KV_TRY(run->pool_, MakeModelCache(variant.model->shape(), {.sequences = 2}));
    run->cache_ = std::make_unique<kvcache::CachedSequence>(*run->pool_);
    return run;
  }

  const std::string& name() const { return variant_.name; }
  const model::ModelShape& shape() const { return variant_.model->shape(); }

  // Everything before the token whose step is timed.
  base::Result<void> GrowTo(std::size_t length, base::ThreadTeam& team) {
    return Prefill(*cache_, length - 1, team);
  }

  // The step of the token that makes the text this long; the text is then as it was before.
  base::Result<double> TimeStep(base::ThreadTeam& team) {
    const std::size_t before = cache_->length();
    const Stopwatch watch;
    KV_TRY(Step(*cache_, 1, team));
    const double seconds = watch.Seconds();
    cache_->Truncate(before);
    return seconds;
  }

  // The step's logits against those of a whole prefill.
  base::Result<void> Check(base::ThreadTeam& team) {
    const std::size_t before = cache_->length();
    KV_TRY(Step(*cache_, 1, team));
    cache_->Truncate(before);
    const std::vector<float> stepped = logits_;
    kvcache::CachedSequence fresh(*pool_);
    KV_TRY(Step(fresh, before + 1, team));
    if (std::memcmp(stepped.data(), logits_.data(), logits_.size() * sizeof(float)) != 0) {
      return MakeError(ErrorCode::kNumeric,
                       "{}: a step at {} tokens gives other logits than prefill: not timed", name(),
                       before + 1);
    }
    return base::Success();
  }

 private:
  Run(const AttentionVariant& variant, std::uint64_t longest)
      : variant_(variant), text_(longest), logits_(variant.model->shape().vocab) {
    RandomStream random(/*seed=*/1);
    for (TokenId& token : text_) token = static_cast<TokenId>(random.Below(shape().vocab));
  }

  base::Result<void> Prefill(kvcache::CachedSequence& cache, std::size_t length,
                             base::ThreadTeam& team) {
    while (cache.length() < length) {
      const std::size_t count = std::min(kChunk, length - cache.length());
      const model::BatchItem item = {&cache, std::span(text_).subspan(cache.length(), count), 0};
      KV_TRY(variant_.model->Forward({&item, 1}, scratch_, team, {}));
    }
    return base::Success();
  }
  // count tokens at once, logits of the last.
  base::Result<void> Step(kvcache::CachedSequence& cache, std::size_t count,
                          base::ThreadTeam& team) {
    const model::BatchItem item = {&cache, std::span(text_).subspan(cache.length(), count), 1};
    return variant_.model->Forward({&item, 1}, scratch_, team, logits_);
  }

  AttentionVariant variant_;
  std::vector<TokenId> text_;  // [longest]
  std::vector<float> logits_;  // [vocab]
  model::Scratch scratch_;
  std::unique_ptr<kvcache::BlockPool> pool_;
  std::unique_ptr<kvcache::CachedSequence> cache_;
};

using Runs = std::vector<std::unique_ptr<Run>>;

base::Result<void> MeasureLength(const Runs& runs, std::uint64_t length, std::uint64_t repetitions,
                                 base::ThreadTeam& team, std::vector<AttentionSpeed>& speeds) {
  for (const auto& run : runs) {
    KV_TRY(run->GrowTo(length, team));
    KV_TRY(run->Check(team));
  }
  std::vector<std::vector<double>> seconds(runs.size()), ratios(runs.size());
  for (std::uint64_t i = 0; i < repetitions; ++i) {
    for (std::size_t r = 0; r < runs.size(); ++r) {
      KV_TRY(const double time, runs[r]->TimeStep(team));
      seconds[r].push_back(time);
      ratios[r].push_back(time / seconds[0].back());
    }
  }
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const model::ModelShape& shape = runs[r]->shape();
    speeds.push_back({.name = runs[r]->name(),
                      .length = length,
                      .cache_bytes_per_token = KvBytesAt(shape, 0),
                      .weight_bytes = WeightBytesPerStep(shape),
                      .cache_bytes = KvBytesAt(shape, length - 1),
                      .us_per_token = Median(seconds[r]) * 1e6,
                      .us_best = *std::min_element(seconds[r].begin(), seconds[r].end()) * 1e6,
                      .ratio = Median(ratios[r])});
  }
  return base::Success();
}

}  // namespace

base::Result<std::vector<AttentionSpeed>> MeasureAttention(
    std::span<const AttentionVariant> variants, std::vector<std::uint64_t> lengths,
    std::uint64_t repetitions, base::ThreadTeam& team) {
  std::sort(lengths.begin(), lengths.end());
  for (const AttentionVariant& variant : variants) {
    const std::uint64_t context = variant.model->shape().context;
    for (const std::uint64_t length : lengths) {
      if (length < 1 || length > context) {
        return MakeError(ErrorCode::kUsage, "{} tokens cannot be measured: 1 to {}, the context",
                         length, context);
      }
    }
  }
  Runs runs;
  for (const AttentionVariant& variant : variants) {
    KV_TRY(auto run, Run::Make(variant, lengths.empty() ? 0 : lengths.back()));
    runs.push_back(std::move(run));
  }
  std::vector<AttentionSpeed> speeds;
  for (const std::uint64_t length : lengths) {
    KV_TRY(MeasureLength(runs, length, repetitions, team, speeds));
  }
  return speeds;
}

}  // namespace kvasir::eval
