#include "eval/speed.h"

#include <algorithm>
#include <atomic>

#include "base/aligned.h"
#include "base/check.h"
#include "kernels/roofs.h"

namespace kvasir::eval {
namespace {

// Long enough for a clock of microseconds, short enough to fit between two interruptions.
constexpr double kSampleSeconds = 2e-3;

// The rate of body(rounds), best of the repetitions: `work` of one round is done in how many
// seconds? Rounds are chosen so that a sample takes about kSampleSeconds.
template <typename Body>
double BestRate(double work, std::size_t repetitions, const Body& body) {
  std::size_t rounds = 1;
  for (;;) {
    const Stopwatch watch;
    body(rounds);
    const double seconds = watch.Seconds();
    if (seconds >= kSampleSeconds || rounds >= (std::size_t{1} << 40)) break;
    rounds *= 2;
  }
  double best = 0;
  for (std::size_t i = 0; i < repetitions; ++i) {
    const Stopwatch watch;
    body(rounds);
    best = std::max(best, work * static_cast<double>(rounds) / watch.Seconds());
  }
  return best;
}

}  // namespace

double Median(std::vector<double> values) {
  KV_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double MeasureReadRoof(std::size_t bytes, std::size_t repetitions, base::ThreadTeam& team) {
  const std::size_t words = std::max<std::size_t>(bytes / sizeof(std::uint32_t), 1024);
  base::AlignedArray<std::uint32_t> buffer(words);
  for (std::size_t i = 0; i < words; ++i) buffer[i] = static_cast<std::uint32_t>(i);
  std::atomic<std::uint32_t> sum = 0;  // Read, so that no read can be left out.
  return BestRate(static_cast<double>(words * sizeof(std::uint32_t)) / 1e9, repetitions,
                  [&](std::size_t rounds) {
                    team.Run([&](base::Member& member) {
                      const base::IndexRange share = member.Share(words);
                      std::uint32_t part = 0;
                      for (std::size_t i = 0; i < rounds; ++i) {
                        part += kernels::SumWords(buffer.data() + share.begin, share.size());
                      }
                      sum += part;
                    });
                  });
}

double MeasureFmaRoof(std::size_t repetitions, base::ThreadTeam& team) {
  constexpr std::size_t kRounds = 1000;
  const double flops = kernels::RunFmaChains(kRounds).flops * static_cast<double>(team.size());
  return BestRate(flops / 1e9, repetitions, [&](std::size_t rounds) {
    team.Run([&](base::Member&) {
      const float result = kernels::RunFmaChains(kRounds * rounds).result;
      KV_CHECK(result > 0);
    });
  });
}

}  // namespace kvasir::eval
