#include "kernels/roofs.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/targets.h"

namespace kvasir::kernels {
namespace {

TEST(RoofsTest, EveryWordIsReadOnceOnEveryTargetAndTail) {
  for (const Target& target : AvailableTargets()) {
    ForceTarget(target);
    for (std::size_t count = 0; count < 300; count += count < 40 ? 1 : 13) {
      std::vector<std::uint32_t> words(count);
      std::uint32_t expected = 0;
      for (std::size_t i = 0; i < count; ++i) {
        words[i] = static_cast<std::uint32_t>(i * 2654435761u + 17);
        expected += words[i];
      }
      EXPECT_EQ(SumWords(words.data(), count), expected) << target.name << " " << count;
    }
  }
  UseBestTarget();
}

TEST(RoofsTest, EveryChainIsRun) {
  for (const Target& target : AvailableTargets()) {
    ForceTarget(target);
    // A chain that starts from 2 + e is at 2 + e / 2^n after n rounds: 24 + 78 / 2^n together.
    EXPECT_EQ(RunFmaChains(0).result, 24.0f + 78.0f);
    EXPECT_EQ(RunFmaChains(1).result, 24.0f + 39.0f);
    EXPECT_EQ(RunFmaChains(3).result, 24.0f + 9.75f);
    const double flops = RunFmaChains(10).flops;
    EXPECT_GE(flops, 2.0 * 12 * 10 * 4);
    EXPECT_EQ(RunFmaChains(20).flops, 2 * flops);
  }
  UseBestTarget();
}

}  // namespace
}  // namespace kvasir::kernels
