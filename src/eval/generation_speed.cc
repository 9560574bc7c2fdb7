#include "eval/generation_speed.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "eval/model_cache.h"
#include "eval/model_work.h"
#include "eval/random_stream.h"
#include "eval/sequence_logits.h"
#include "eval/speed.h"
#include "sampling/sampler.h"

namespace kvasir::eval {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;

constexpr std::size_t kEdge = 16;         // Positions that count as start or end of a context.
constexpr std::size_t kBatchPrompt = 16;  // Tokens.

base::Result<void> CheckTokens(const model::Model& model, std::uint64_t tokens) {
  if (tokens < 1 || tokens > model.shape().context) {
    return MakeError(ErrorCode::kUsage, "{} tokens cannot be measured: 1 to {}, the context",
                     tokens, model.shape().context);
  }
  return base::Success();
}

std::vector<TokenId> SomeTokens(std::size_t count, std::uint64_t vocab, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(vocab));
  return tokens;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// One text written by the model, one step and one draw a token.
class Generation {
 public:
  Generation(const model::Model& model, kvcache::BlockPool& pool, base::ThreadTeam& team)
      : model_(model),
        team_(team),
        cache_(pool),
        sampler_({.temperature = 1.0f}, /*seed=*/1),
        logits_(model.shape().vocab) {
    step_seconds_.reserve(model.shape().context);
    draw_seconds_.reserve(model.shape().context);
  }

  // `tokens` steps. After each, on_row sees its logits; it may be null.
  template <typename OnRow>
  base::Result<void> Run(std::size_t tokens, bool kv_cache, const OnRow& on_row) {
    text_.assign(1, 0);
    cache_.Reset();
    step_seconds_.clear();
    draw_seconds_.clear();
    for (std::size_t i = 0; i < tokens; ++i) {
      const Stopwatch step_watch;
      if (!kv_cache) cache_.Reset();
      const model::BatchItem item = {&cache_, std::span(text_).subspan(cache_.length()), 1};
      KV_TRY(model_.Forward({&item, 1}, scratch_, team_, logits_));
      step_seconds_.push_back(step_watch.Seconds());
      const Stopwatch draw_watch;
      KV_TRY(const auto drawn, sampler_.Draw(logits_, text_, static_cast<std::uint32_t>(i + 1)));
      text_.push_back(drawn.token);
      draw_seconds_.push_back(draw_watch.Seconds());
      on_row(std::span<const float>(logits_));
    }
    return base::Success();
  }
  base::Result<void> Run(std::size_t tokens, bool kv_cache) {
    return Run(tokens, kv_cache, [](std::span<const float>) {});
  }

  const std::vector<TokenId>& text() const { return text_; }  // One more than the steps.
  double Seconds() const { return Sum(step_seconds_, 0, step_seconds_.size()) + DrawSeconds(); }
  double StepSeconds() const { return Sum(step_seconds_, 0, step_seconds_.size()); }
  double DrawSeconds() const { return Sum(draw_seconds_, 0, draw_seconds_.size()); }
  double MeanStepSeconds(std::size_t begin, std::size_t end) const {
    return Sum(step_seconds_, begin, end) / static_cast<double>(end - begin);
  }

 private:
  static double Sum(const std::vector<double>& values, std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += values[i];
    return sum;
  }

  const model::Model& model_;
  base::ThreadTeam& team_;
  kvcache::CachedSequence cache_;
  sampling::Sampler sampler_;
  model::Scratch scratch_;
  std::vector<float> logits_;  // [vocab]
  std::vector<TokenId> text_;
  std::vector<double> step_seconds_, draw_seconds_;  // [steps]
};

}  // namespace

base::Result<DecodeSpeed> MeasureDecode(const model::Model& model, const SpeedOptions& options,
                                        base::ThreadTeam& team) {
  KV_TRY(CheckTokens(model, options.tokens));
  const std::size_t tokens = options.tokens;
  KV_TRY(const auto pool, MakeModelCache(model.shape(), {.policy = options.policy}));
  Generation run(model, *pool, team);
  std::vector<float> rows;
  KV_TRY(run.Run(tokens, true, [&](std::span<const float> row) {
    rows.insert(rows.end(), row.begin(), row.end());
  }));
  KV_TRY(const auto expected, SequenceLogits(model, std::span(run.text()).first(tokens),
                                             {.policy = options.policy}, team));
  if (!SameBits(rows, expected)) {
    return MakeError(ErrorCode::kNumeric, "decoding gives other logits than prefill: not timed");
  }
  const std::size_t edge = std::min(kEdge, tokens);
  std::vector<double> all, steps, draws, starts, ends;
  for (std::uint64_t i = 0; i < options.repetitions; ++i) {
    KV_TRY(run.Run(tokens, true));
    all.push_back(run.Seconds());
    steps.push_back(run.StepSeconds());
    draws.push_back(run.DrawSeconds());
    starts.push_back(run.MeanStepSeconds(0, edge));
    ends.push_back(run.MeanStepSeconds(tokens - edge, tokens));
  }
  const double us = 1e6 / static_cast<double>(tokens);
  DecodeSpeed speed;
  speed.us_per_token = Median(all) * us;
  speed.us_per_token_forward = Median(steps) * us;
  speed.us_per_token_sampling = Median(draws) * us;
  speed.us_per_token_start = Median(starts) * 1e6;
  speed.us_per_token_end = Median(ends) * 1e6;
  speed.weight_bytes = static_cast<double>(WeightBytesPerStep(model.shape()));
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::uint64_t bytes =
        options.policy ? pool->geometry().HeldBytes(t + 1) : KvBytesAt(model.shape(), t);
    speed.kv_bytes += static_cast<double>(bytes) / static_cast<double>(tokens);
  }
  speed.gb_per_s = (speed.weight_bytes + speed.kv_bytes) / speed.us_per_token_forward / 1e3;
  return speed;
}

base::Result<PrefillSpeed> MeasurePrefill(const model::Model& model, const SpeedOptions& options,
                                          base::ThreadTeam& team) {
  KV_TRY(CheckTokens(model, options.tokens));
  const std::size_t vocab = model.shape().vocab;
  const auto tokens = SomeTokens(options.tokens, vocab, 1);
  KV_TRY(const auto expected,
         SequenceLogits(model, tokens, {.prefill_chunk = 1, .policy = options.policy}, team));
  KV_TRY(const auto pool, MakeModelCache(model.shape(), {.policy = options.policy}));
  kvcache::CachedSequence cache(*pool);
  model::Scratch scratch;
  std::vector<float> row(vocab);
  const model::BatchItem item = {&cache, tokens, 1};
  KV_TRY(model.Forward({&item, 1}, scratch, team, row));
  if (!SameBits(row, std::span(expected).last(vocab))) {
    return MakeError(ErrorCode::kNumeric, "prefill gives other logits than decoding: not timed");
  }
  std::vector<double> seconds;
  for (std::uint64_t i = 0; i < options.repetitions; ++i) {
    cache.Reset();
    const Stopwatch watch;
    KV_TRY(model.Forward({&item, 1}, scratch, team, row));
    seconds.push_back(watch.Seconds());
  }
  const double median = Median(seconds);
  return PrefillSpeed{median * 1e3, static_cast<double>(options.tokens) / median,
                      PrefillFlops(model.shape(), 0, options.tokens) / median / 1e9};
}

base::Result<BatchSpeed> MeasureBatch(const model::Model& model, std::uint64_t sequences,
                                      const SpeedOptions& options, base::ThreadTeam& team) {
  const std::size_t context = model.shape().context;
  const std::size_t prompt = std::min(kBatchPrompt, std::max<std::size_t>(context / 2, 1));
  KV_TRY(CheckTokens(model, options.tokens));
  KV_TRY(CheckTokens(model, options.tokens + prompt));
  const std::size_t vocab = model.shape().vocab;
  const std::size_t length = prompt + options.tokens;
  KV_TRY(const auto pool,
         MakeModelCache(model.shape(), {.policy = options.policy, .sequences = sequences}));
  std::vector<std::vector<TokenId>> texts;
  std::vector<kvcache::CachedSequence> caches;
  for (std::uint64_t i = 0; i < sequences; ++i) {
    texts.push_back(SomeTokens(length, vocab, i));
    caches.emplace_back(*pool);
  }
  model::Scratch scratch;
  std::vector<float> rows(sequences * vocab);
  std::vector<model::BatchItem> items(sequences);
  const auto step = [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = 0; i < sequences; ++i) {
      items[i] = {&caches[i], std::span(texts[i]).subspan(begin, count), 1};
    }
    return model.Forward(items, scratch, team, rows);
  };
  std::vector<double> seconds;
  // The first repetition is the check's, and not counted.
  for (std::uint64_t i = 0; i <= options.repetitions; ++i) {
    for (kvcache::CachedSequence& cache : caches) cache.Reset();
    KV_TRY(step(0, prompt));
    const Stopwatch watch;
    for (std::size_t t = prompt; t < length; ++t) {
      KV_TRY(step(t, 1));
    }
    if (i > 0) {
      seconds.push_back(watch.Seconds());
      continue;
    }
    for (std::size_t k = 0; k < sequences; ++k) {
      KV_TRY(const auto alone, SequenceLogits(model, texts[k], {.policy = options.policy}, team));
      if (!SameBits(std::span(rows).subspan(k * vocab, vocab), std::span(alone).last(vocab))) {
        return MakeError(ErrorCode::kNumeric,
                         "sequence {} of {} has other logits than alone: not timed", k, sequences);
      }
    }
  }
  const double median = Median(seconds);
  return BatchSpeed{static_cast<double>(sequences * options.tokens) / median,
                    median * 1e3 / static_cast<double>(options.tokens)};
}

base::Result<CacheGain> MeasureCacheGain(const model::Model& model, const SpeedOptions& options,
                                         base::ThreadTeam& team) {
  KV_TRY(CheckTokens(model, options.tokens));
  KV_TRY(const auto pool, MakeModelCache(model.shape(), {}));
  Generation run(model, *pool, team);
  std::vector<float> rows;
  KV_TRY(run.Run(options.tokens, true, [&](std::span<const float> row) {
    rows.insert(rows.end(), row.begin(), row.end());
  }));
  const std::vector<TokenId> text = run.text();
  std::size_t place = 0;
  bool same = true;
  KV_TRY(run.Run(options.tokens, false, [&](std::span<const float> row) {
    same = same && SameBits(row, std::span(rows).subspan(place, row.size()));
    place += row.size();
  }));
  if (!same || run.text() != text) {
    return MakeError(ErrorCode::kNumeric,
                     "the cache changes the logits or the tokens drawn: not timed");
  }
  std::vector<double> on, off, ratios;
  for (std::uint64_t i = 0; i < options.repetitions; ++i) {
    KV_TRY(run.Run(options.tokens, true));
    on.push_back(run.Seconds() * 1e3);
    KV_TRY(run.Run(options.tokens, false));
    off.push_back(run.Seconds() * 1e3);
    ratios.push_back(off.back() / on.back());
  }
  return CacheGain{Median(on), Median(off), Median(ratios), options.tokens,
                   options.tokens * (options.tokens + 1) / 2};
}

}  // namespace kvasir::eval
