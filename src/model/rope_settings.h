// How positions become rotary frequencies: base, scaling for longer contexts, partial rotation.
#ifndef KVASIR_MODEL_ROPE_SETTINGS_H_
#define KVASIR_MODEL_ROPE_SETTINGS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "kernels/rope.h"

namespace kvasir::model {

// Pair i of a head turns by position · base^(−2i / dimensions) / factor / divisors[i].
struct RopeSettings {
  kernels::RopePairing pairing = kernels::RopePairing::kNeighbours;
  std::uint64_t dimensions = 0;  // Channels of a head that turn, the first ones; even.
  float base = 10000;
  float factor = 1;                  // Linear scaling (Chen et al. 2023, arXiv:2306.15595).
  std::vector<float> divisors = {};  // [dimensions / 2], as in rope_freqs.weight; empty: all 1.

  friend bool operator==(const RopeSettings&, const RopeSettings&) = default;
};

// Positions of a model are below this, so that no angle of a checked RopeSettings exceeds
// kernels::kMaxAngle.
inline constexpr std::uint64_t kMaxRopePositions = std::uint64_t{1} << 20;

// kBadData naming the setting by its GGUF key (architecture + ".rope.…"), value and what is
// allowed.
base::Result<void> CheckRope(std::string_view architecture, const RopeSettings& rope,
                             std::uint64_t head_dim);

// [dimensions / 2], in f64 by our own exp and log (R4). Requires checked settings.
std::vector<double> RopeFrequencies(const RopeSettings& rope);

// The base that gives the lowest frequency a period `factor` times as long, and leaves the highest
// alone: "NTK-aware" scaling. Requires dimensions > 2.
float NtkBase(float base, double factor, std::uint64_t dimensions);

// Llama 3.1's scaling: periods that fit the original context high_frequency times or more stay,
// those that fit low_frequency times or less become `factor` times as long, and between them the
// frequencies are blended.
struct Llama3Scaling {
  double factor = 8;
  double low_frequency = 1;
  double high_frequency = 4;
  double original_context = 8192;
};
std::vector<float> Llama3Divisors(const Llama3Scaling& scaling, float base,
                                  std::uint64_t dimensions);

// Reads architecture + ".rope.…" and the tensor rope_freqs.weight. Scaling types none, linear, ntk
// and llama3 are read; all others (yarn, longrope, …) are refused by name. The result is checked.
base::Result<RopeSettings> ReadRope(const formats::GgufFile& file, std::string_view architecture,
                                    kernels::RopePairing pairing, std::uint64_t head_dim);

// Writes what ReadRope reads back as the same settings.
void WriteRope(std::string_view architecture, const RopeSettings& rope,
               formats::GgufWriter& writer);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_ROPE_SETTINGS_H_
