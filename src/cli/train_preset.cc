#include "cli/train_preset.h"

#include <algorithm>
#include <iterator>

#include "model/gpt2_config.h"
#include "training/memory.h"

namespace kvasir::cli {
namespace {

struct Rung {
  std::uint64_t layers, dim, heads, context;
  double learning_rate;  // Smaller for wider models.
};

constexpr Rung kLadder[] = {
    {4, 128, 4, 128, 2e-3},    {6, 192, 6, 128, 1.6e-3}, {6, 256, 8, 256, 1.3e-3},
    {8, 320, 10, 256, 1.1e-3}, {10, 384, 6, 256, 1e-3},  {12, 512, 8, 512, 8e-4},
    {12, 768, 12, 512, 6e-4},
};
constexpr double kFlopsPerCore = 40e9;  // Sustained; the trainer does better on a quiet machine.
constexpr double kLeastTokens = 5;      // A parameter, for a shape to be worth its size.
constexpr double kMostPasses = 20;      // Over the text; more teach it by heart.
constexpr std::uint64_t kBatch = 32;

double SecondsOf(Preset preset) {
  return preset == Preset::kNano ? 600 : preset == Preset::kSmall ? 3600 : 8 * 3600;
}

double LayerParameters(const Rung& rung) {
  return 12.0 * static_cast<double>(rung.layers * rung.dim * rung.dim);
}

// Tokens that the run reads.
double TokensOf(const Rung& rung, Preset preset, const PresetBasis& basis) {
  const auto cores = static_cast<double>(basis.cores);
  const double head = static_cast<double>(basis.vocabulary * rung.dim);
  // Forward and backward: 6 operations a weight and token (Kaplan et al. 2020).
  const double per_token = 6 * (LayerParameters(rung) + head);
  return std::min(SecondsOf(preset) * cores * kFlopsPerCore / per_token,
                  kMostPasses * static_cast<double>(basis.text_tokens));
}

bool Fits(const Rung& rung, const PresetBasis& basis) {
  const model::Gpt2Config config{.layers = rung.layers,
                                 .heads = rung.heads,
                                 .embedding = rung.dim,
                                 .feed_forward = 4 * rung.dim,
                                 .context = rung.context,
                                 .vocab = basis.vocabulary};
  const auto bytes = training::TrainingBytes(config, {.batch = kBatch},
                                             {.threads = basis.cores,
                                              .text_tokens = basis.text_tokens,
                                              .held_out = true,
                                              .checkpoints = true});
  return bytes && *bytes <= basis.memory_bytes / 2;
}

}  // namespace

std::optional<Preset> PresetOf(std::string_view name) {
  if (name == "nano") return Preset::kNano;
  if (name == "small") return Preset::kSmall;
  if (name == "base") return Preset::kBase;
  return std::nullopt;
}

PresetSettings SettingsOf(Preset preset, const PresetBasis& basis) {
  const Rung* chosen = &kLadder[0];
  for (const Rung& rung : kLadder) {
    if (TokensOf(rung, preset, basis) >= kLeastTokens * LayerParameters(rung) &&
        rung.context < basis.text_tokens && Fits(rung, basis)) {
      chosen = &rung;
    }
  }
  PresetSettings s;
  s.layers = chosen->layers;
  s.heads = chosen->heads;
  s.dim = chosen->dim;
  s.context = std::min(chosen->context, std::max<std::uint64_t>(basis.text_tokens, 2) - 1);
  s.batch = kBatch;
  s.learning_rate = chosen->learning_rate;
  const double tokens = TokensOf(*chosen, preset, basis);
  const auto steps = static_cast<std::uint64_t>(tokens / static_cast<double>(s.batch * s.context));
  s.steps = std::max<std::uint64_t>(steps, 20);
  s.warmup = std::min<std::uint64_t>(s.steps / 20, 500);
  s.eval_every = std::clamp<std::uint64_t>(s.steps / 20, 1, 500);
  const double passes = tokens / static_cast<double>(basis.text_tokens);
  s.dropout = passes > 8 ? 0.1 : passes > 4 ? 0.05 : 0.0;
  return s;
}

}  // namespace kvasir::cli
