#include "eval/cache_timing.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/check.h"
#include "eval/model_cache.h"
#include "eval/random_stream.h"
#include "eval/speed.h"

namespace kvasir::eval {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;

constexpr std::size_t kPrefillTokens = 512;  // A step, which bounds its buffers.
constexpr std::uint64_t kFewestPairs = 3;
constexpr std::size_t kFewestForFit = 3;

// Sequences that grow from length to length, and one without a past.
class Lab {
 public:
  Lab(const model::Model& model, kvcache::BlockPool& pool, std::uint64_t batch,
      std::uint64_t longest, base::ThreadTeam& team)
      : model_(model), team_(team), without_(pool) {
    const std::uint64_t vocab = model.shape().vocab;
    for (std::uint64_t i = 0; i < batch; ++i) {
      RandomStream random(i);
      std::vector<TokenId>& text = texts_.emplace_back(longest);
      for (TokenId& token : text) token = static_cast<TokenId>(random.Below(vocab));
      with_.emplace_back(pool);
    }
    logits_with_.resize(batch * vocab);
    logits_without_.resize(vocab);
  }

  std::uint64_t batch() const { return texts_.size(); }

  // Caches the first `tokens` − 1 positions of every text; never fewer than before.
  base::Result<void> GrowTo(std::uint64_t tokens) {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      while (with_[i].length() + 1 < tokens) {
        const std::size_t begin = with_[i].length();
        const std::size_t count = std::min<std::size_t>(tokens - 1 - begin, kPrefillTokens);
        const model::BatchItem item = {&with_[i], std::span(texts_[i]).subspan(begin, count), 0};
        KV_TRY(model_.Forward({&item, 1}, scratch_, team_, {}));
      }
    }
    return base::Success();
  }

  // One step over all sequences, taken back afterwards. Seconds.
  base::Result<double> StepWith(std::uint64_t tokens) {
    std::vector<model::BatchItem> items;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      items.push_back({&with_[i], std::span(texts_[i]).subspan(tokens - 1, 1), 1});
    }
    const Stopwatch watch;
    KV_TRY(model_.Forward(items, scratch_, team_, logits_with_));
    const double seconds = watch.Seconds();
    for (kvcache::CachedSequence& sequence : with_) sequence.Truncate(tokens - 1);
    return seconds;
  }

  // All positions of one sequence. Seconds.
  base::Result<double> StepWithout(std::uint64_t tokens, std::size_t sequence) {
    without_.Reset();
    const model::BatchItem item = {&without_, std::span(texts_[sequence]).first(tokens), 1};
    const Stopwatch watch;
    KV_TRY(model_.Forward({&item, 1}, scratch_, team_, logits_without_));
    return watch.Seconds();
  }

  // Requires a StepWith and then a StepWithout of this sequence, of equal lengths.
  bool SameLogits(std::size_t sequence) const {
    const std::size_t vocab = logits_without_.size();
    return std::memcmp(&logits_with_[sequence * vocab], logits_without_.data(),
                       vocab * sizeof(float)) == 0;
  }

 private:
  const model::Model& model_;
  base::ThreadTeam& team_;
  std::vector<std::vector<TokenId>> texts_;    // [batch][longest]
  std::vector<kvcache::CachedSequence> with_;  // [batch]
  kvcache::CachedSequence without_;
  model::Scratch scratch_;
  std::vector<float> logits_with_;     // [batch][vocab]
  std::vector<float> logits_without_;  // [vocab]
};

// Checks the cell's bits; tells how long a step without cache takes for the whole batch, in
// seconds.
base::Result<double> Check(Lab& lab, std::uint64_t tokens) {
  KV_TRY(lab.StepWith(tokens));
  double seconds = 0;
  for (const std::size_t sequence : {std::size_t{0}, lab.batch() - 1}) {
    KV_TRY(seconds, lab.StepWithout(tokens, sequence));
    if (lab.SameLogits(sequence)) continue;
    return MakeError(ErrorCode::kNumeric,
                     "the cache changes the logits of sequence {} of {} at {} tokens: not timed",
                     sequence + 1, lab.batch(), tokens);
  }
  return seconds * static_cast<double>(lab.batch());
}

base::Result<StepTime> MeasureCell(Lab& lab, std::uint64_t tokens,
                                   const CacheTimingOptions& options, const Stopwatch& all) {
  KV_TRY(lab.GrowTo(tokens));
  KV_TRY(const double seconds_without, Check(lab, tokens));
  const std::uint64_t fewest = std::min(kFewestPairs, options.repetitions);
  const double least_seconds = seconds_without * static_cast<double>(fewest);
  const bool pairs = least_seconds <= 3 * options.cell_seconds &&
                     all.Seconds() + least_seconds <= options.all_seconds;
  std::vector<double> with, without, ratios;
  const Stopwatch cell;
  for (std::uint64_t i = 0; i < options.repetitions; ++i) {
    if (i >= fewest && cell.Seconds() > options.cell_seconds) break;
    KV_TRY(lab.StepWith(tokens));  // For what a step leaves in the processor's caches.
    KV_TRY(const double step, lab.StepWith(tokens));
    with.push_back(step * 1e3);
    if (!pairs) continue;
    double seconds = 0;
    for (std::size_t sequence = 0; sequence < lab.batch(); ++sequence) {
      KV_TRY(const double one, lab.StepWithout(tokens, sequence));
      seconds += one;
    }
    without.push_back(seconds * 1e3);
    ratios.push_back(without.back() / with.back());
  }
  StepTime time = {.tokens = tokens, .ms_with = Median(with), .ms_without = {}, .ratio = {}};
  if (pairs) {
    time.ms_without = Median(without);
    time.ratio = Median(ratios);
  }
  return time;
}

// Σ of a quantity over steps 1 … tokens of each length, linear between the lengths.
std::vector<double> SumsOf(const std::vector<std::uint64_t>& lengths,
                           const std::vector<double>& values) {
  std::vector<double> sums;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double before = i == 0 ? values[0] : values[i - 1];
    const auto steps = static_cast<double>(i == 0 ? lengths[0] : lengths[i] - lengths[i - 1]);
    sum += steps * before + (values[i] - before) * (steps + 1) / 2;
    sums.push_back(sum);
  }
  return sums;
}

std::optional<PolynomialFit> FitOf(const std::vector<std::uint64_t>& lengths,
                                   const std::vector<double>& values, std::span<const int> powers) {
  if (values.size() < kFewestForFit) return std::nullopt;
  std::vector<double> x(lengths.begin(),
                        lengths.begin() + static_cast<std::ptrdiff_t>(values.size()));
  return FitPowers(x, values, powers);
}

}  // namespace

void SumUp(BatchTiming& timing) {
  std::vector<std::uint64_t> lengths;
  std::vector<double> with, without;  // The latter as far as there is no gap.
  for (const StepTime& step : timing.steps) {
    if (step.ms_without && without.size() == lengths.size()) without.push_back(*step.ms_without);
    lengths.push_back(step.tokens);
    with.push_back(step.ms_with);
  }
  const std::vector<double> text_with = SumsOf(lengths, with);
  const std::vector<double> text_without = SumsOf(lengths, without);
  timing.texts.clear();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    TextTime text = {.tokens = lengths[i], .ms_with = text_with[i], .ms_without = {}};
    if (i < text_without.size()) text.ms_without = text_without[i];
    timing.texts.push_back(text);
  }
  timing.step_with = FitOf(lengths, with, kStepPowers);
  timing.text_without = FitOf(lengths, text_without, kTextPowers);
  timing.text_cubic = FitOf(lengths, text_without, kCubicPowers);
}

base::Result<std::vector<BatchTiming>> MeasureCacheTiming(const model::Model& model,
                                                          const CacheTimingOptions& options,
                                                          base::ThreadTeam& team) {
  KV_CHECK(!options.lengths.empty() && options.repetitions >= 1);
  KV_CHECK(std::is_sorted(options.lengths.begin(), options.lengths.end(), std::less_equal<>()));
  for (const std::uint64_t tokens : options.lengths) {
    if (tokens >= 1 && tokens <= model.shape().context) continue;
    return MakeError(ErrorCode::kUsage, "{} tokens cannot be measured: 1 to {}, the context",
                     tokens, model.shape().context);
  }
  const Stopwatch all;
  std::vector<BatchTiming> timings;
  for (const std::uint64_t batch : options.batches) {
    KV_CHECK(batch >= 1);
    KV_TRY(const auto pool, MakeModelCache(model.shape(), {.sequences = batch + 1}));
    Lab lab(model, *pool, batch, options.lengths.back(), team);
    BatchTiming& timing = timings.emplace_back();
    timing.batch = batch;
    for (const std::uint64_t tokens : options.lengths) {
      KV_TRY(const StepTime step, MeasureCell(lab, tokens, options, all));
      timing.steps.push_back(step);
    }
    SumUp(timing);
  }
  return timings;
}

}  // namespace kvasir::eval
