// Sizes of model and run that suit a machine and a text.
#ifndef KVASIR_CLI_TRAIN_PRESET_H_
#define KVASIR_CLI_TRAIN_PRESET_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvasir::cli {

enum class Preset {
  kNano,   // About ten minutes.
  kSmall,  // About an hour.
  kBase,   // About eight hours.
};
std::optional<Preset> PresetOf(std::string_view name);  // "nano", "small", "base"

// What it is sized for. The same numbers make the same settings, so a run can be repeated.
struct PresetBasis {
  std::uint64_t cores = 1;  // Physical ones, whatever --threads says.
  std::uint64_t memory_bytes = 0;
  std::uint64_t text_tokens = 0;  // To train on; at least 2.
  std::uint64_t vocabulary = 0;
};

struct PresetSettings {
  std::uint64_t layers = 0, heads = 0, dim = 0, context = 0;
  std::uint64_t batch = 0, steps = 0, warmup = 0, eval_every = 0;
  double learning_rate = 0, dropout = 0;
};

// The largest of a ladder of shapes that the time lets read at least 5 tokens for each parameter of
// its layers, at 40 GFLOP/s a core and at most 20 times the whole text, and whose training takes at
// most half of the memory; with as many steps as that time holds. A text that is read often gets
// dropout. The smallest where none does; its context is then cut to the text.
PresetSettings SettingsOf(Preset preset, const PresetBasis& basis);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_PRESET_H_
