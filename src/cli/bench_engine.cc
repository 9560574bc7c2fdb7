// Kind "engine" of kvasir bench: many streams through the whole engine.
#include <algorithm>
#include <cstdint>

#include "cli/bench.h"
#include "eval/engine_speed.h"

namespace kvasir::cli {

base::Result<Rows> RunBenchEngine(const Bench& bench) {
  constexpr std::uint64_t kLeastVocabulary = 300;
  if (bench.shape().vocab < kLeastVocabulary) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "a vocabulary of {} tokens is too small for this kind: at least {}",
                           bench.shape().vocab, kLeastVocabulary);
  }
  KV_TRY(const auto vocabulary, eval::MakePlainVocabulary(bench.shape().vocab));
  Rows rows;
  auto counts = bench.flags.sequences;
  if (counts.empty()) counts = {32};
  const auto lengths = bench.TokensOr({std::min<std::uint64_t>(100, bench.shape().context / 2)});
  for (const std::uint64_t count : counts) {
    for (const std::uint64_t tokens : lengths) {
      KV_TRY(const auto speed, eval::MeasureEngine(bench.model, vocabulary, count,
                                                   bench.Options(tokens), bench.team));
      rows.push_back({{"streams", count},
                      {"tokens", tokens},
                      {"tokens_per_s", speed.tokens_per_s},
                      {"first_token_ms", speed.first_token_ms},
                      {"ms_per_step", speed.ms_per_step}});
    }
  }
  return rows;
}

}  // namespace kvasir::cli
