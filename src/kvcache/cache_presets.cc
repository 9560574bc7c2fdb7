#include "kvcache/cache_presets.h"

namespace kvasir::kvcache {
namespace {

constexpr std::string_view kTwentyKilobytes =
    "Some articles give 20 KB a token for this model. That is K and V of a single layer of a far "
    "smaller one: 2 × 5,120 × 2 bytes = 20,480, one of the 40 layers of a model with 13 billion "
    "parameters. Here one layer alone takes 2 × 12,288 × 2 = 49,152 bytes, and there are 96.";

// Keys and values.
constexpr PlanShape Heads(std::uint64_t layers, std::uint64_t kv_heads, std::uint64_t head_dim,
                          std::uint64_t embedding) {
  return {.layers = layers, .kv_heads = kv_heads, .head_dim = head_dim, .embedding = embedding};
}

// Multi-head latent attention.
constexpr PlanShape Latent(std::uint64_t layers, std::uint64_t latent_dim, std::uint64_t rope_dim,
                           std::uint64_t embedding) {
  return {.layers = layers, .latent_dim = latent_dim, .rope_dim = rope_dim, .embedding = embedding};
}

constexpr CachePreset kPresets[] = {
    {"gpt2", Heads(12, 12, 64, 768), 1024, "Radford et al. 2019, table 2, and config.json", ""},
    {"gpt3-175b", Heads(96, 96, 128, 12288), 2048, "arXiv 2005.14165, table 2.1", kTwentyKilobytes},
    {"opt-13b", Heads(40, 40, 128, 5120), 2048, "arXiv 2205.01068, table 1", ""},
    {"llama2-7b", Heads(32, 32, 128, 4096), 4096, "arXiv 2307.09288 and config.json", ""},
    {"llama2-70b", Heads(80, 8, 128, 8192), 4096, "arXiv 2307.09288 and config.json", ""},
    {"llama3-8b", Heads(32, 8, 128, 4096), 8192, "arXiv 2407.21783, table 3", ""},
    {"llama3-70b", Heads(80, 8, 128, 8192), 8192, "arXiv 2407.21783, table 3", ""},
    {"deepseek-v2", Latent(60, 512, 64, 5120), 131072, "arXiv 2405.04434, section 3.1.2", ""},
    {"deepseek-v3", Latent(61, 512, 64, 7168), 131072, "arXiv 2412.19437, section 4.2", ""},
    {"qwen3-8b", Heads(36, 8, 128, 4096), 40960, "arXiv 2505.09388, table 1, and config.json", ""},
};

}  // namespace

std::span<const CachePreset> CachePresets() { return kPresets; }

const CachePreset* FindCachePreset(std::string_view name) {
  for (const CachePreset& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace kvasir::kvcache
