#include "cli/train_preset.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvasir::cli {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(TrainPreset, Names) {
  EXPECT_EQ(PresetOf("nano"), Preset::kNano);
  EXPECT_EQ(PresetOf("base"), Preset::kBase);
  EXPECT_FALSE(PresetOf("Base").has_value());
}

TEST(TrainPreset, GrowsWithTimeMachineAndText) {
  const PresetBasis laptop{
      .cores = 2, .memory_bytes = 8 * kGiB, .text_tokens = 50000000, .vocabulary = 400};
  const PresetSettings nano = SettingsOf(Preset::kNano, laptop);
  const PresetSettings small = SettingsOf(Preset::kSmall, laptop);
  const PresetSettings base = SettingsOf(Preset::kBase, laptop);
  EXPECT_EQ(nano.dim, 128u);
  EXPECT_EQ(small.dim, 192u);
  EXPECT_EQ(base.dim, 256u);
  PresetBasis server = laptop;
  server.cores = 32;
  server.memory_bytes = 64 * kGiB;
  EXPECT_GT(SettingsOf(Preset::kBase, server).dim, base.dim);
  PresetBasis little = server;
  little.text_tokens = 300000;
  EXPECT_LT(SettingsOf(Preset::kBase, little).dim, SettingsOf(Preset::kBase, server).dim);
  EXPECT_EQ(SettingsOf(Preset::kBase, little).dropout, 0.1);
  EXPECT_EQ(nano.dropout, 0.0);
  PresetBasis cramped = server;
  cramped.memory_bytes = kGiB / 4;
  EXPECT_LT(SettingsOf(Preset::kBase, cramped).dim, SettingsOf(Preset::kBase, server).dim);
}

// Whatever the machine and the text, a run comes out that the trainer takes.
TEST(TrainPreset, AlwaysMakesARun) {
  for (const Preset preset : {Preset::kNano, Preset::kSmall, Preset::kBase}) {
    for (const std::uint64_t cores : {1u, 2u, 64u, 1024u}) {
      for (const std::uint64_t memory : {std::uint64_t{0}, kGiB, 1000 * kGiB}) {
        for (const std::uint64_t tokens : {2ull, 10ull, 129ull, 100000ull, 10000000000ull}) {
          for (const std::uint64_t vocabulary : {260u, 7000u, 200000u}) {
            const PresetSettings s = SettingsOf(preset, {cores, memory, tokens, vocabulary});
            EXPECT_EQ(s.dim % s.heads, 0u);
            EXPECT_EQ(s.dim / s.heads % 2, 0u);
            EXPECT_LT(s.context, tokens);
            EXPECT_GE(s.context, 1u);
            EXPECT_GE(s.steps, 20u);
            EXPECT_LT(s.warmup, s.steps);
            EXPECT_GE(s.eval_every, 1u);
            EXPECT_LE(s.eval_every, s.steps);
            const double passes =
                static_cast<double>(s.steps * s.batch * s.context) / static_cast<double>(tokens);
            EXPECT_TRUE(passes < 20.001 || s.steps == 20);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::cli
