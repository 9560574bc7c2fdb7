#include "kvcache/cache_presets.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace kvasir::kvcache {
namespace {

CachePlan PlanOf(std::string_view name, PlanDType dtype, std::uint64_t tokens) {
  const CachePreset* preset = FindCachePreset(name);
  EXPECT_NE(preset, nullptr) << name;
  if (preset == nullptr) return {};
  const auto plan =
      PlanCache(preset->shape, {.dtype = dtype}, {.requests = {{.count = 1, .tokens = tokens}}});
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? plan.value() : CachePlan();
}

TEST(CachePresetsTest, BytesATokenAreThePublishedOnes) {
  const struct {
    std::string_view name;
    std::uint64_t bytes;  // In f16.
  } published[] = {
      {"gpt2", 36'864},        {"gpt3-175b", 4'718'592},  // 2 · 96 · 12,288 · 2: 4.5 MiB
      {"opt-13b", 819'200},    // 800 KiB: arXiv 2309.06180 (vLLM), section 3
      {"llama2-7b", 524'288},  // 0.5 MiB
      {"llama2-70b", 327'680}, {"llama3-8b", 131'072},   {"llama3-70b", 327'680},
      {"qwen3-8b", 147'456},   {"deepseek-v2", 69'120},  // 576 · 60 · 2
      {"deepseek-v3", 70'272},                           // 70.272 KB: arXiv 2505.09343, table 1
  };
  EXPECT_EQ(std::size(published), CachePresets().size());
  for (const auto& [name, bytes] : published) {
    EXPECT_EQ(PlanOf(name, PlanDType::kF16, 1).bytes_per_token, bytes) << name;
    EXPECT_EQ(PlanOf(name, PlanDType::kBF16, 1).bytes_per_token, bytes) << name;
    EXPECT_EQ(PlanOf(name, PlanDType::kF32, 1).bytes_per_token, 2 * bytes) << name;
  }
}

TEST(CachePresetsTest, AFullContextOfGpt3TakesNineGibibytes) {
  EXPECT_EQ(PlanOf("gpt3-175b", PlanDType::kF16, 2048).bytes_total, std::uint64_t{9} << 30);
}

TEST(CachePresetsTest, TheTwentyKilobytesOfSomeArticlesAreOneLayerOfASmallerModel) {
  const CachePlan small = PlanOf("opt-13b", PlanDType::kF16, 1);
  EXPECT_EQ(small.bytes_per_layer.front(), 20'480u);
  const CachePlan large = PlanOf("gpt3-175b", PlanDType::kF16, 1);
  EXPECT_EQ(large.bytes_per_layer.front(), 49'152u);
  EXPECT_NE(FindCachePreset("gpt3-175b")->note.find("20,480"), std::string_view::npos);
}

TEST(CachePresetsTest, NamesAreDistinctAndEachHasASource) {
  std::set<std::string_view> names;
  for (const CachePreset& preset : CachePresets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_FALSE(preset.source.empty()) << preset.name;
    EXPECT_GE(preset.context, 1024u) << preset.name;
    EXPECT_GE(preset.shape.embedding, 768u) << preset.name;
    EXPECT_EQ(FindCachePreset(preset.name), &preset);
  }
  EXPECT_EQ(FindCachePreset("gpt5"), nullptr);
  EXPECT_EQ(FindCachePreset(""), nullptr);
}

}  // namespace
}  // namespace kvasir::kvcache
