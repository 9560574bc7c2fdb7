#include "model/rope_settings.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "formats/printable.h"
#include "kernels/scalar_math.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;

constexpr double kMaxBase = 1e15;  // NTK scaling may take it far beyond what files hold.
// With these no frequency exceeds 64 · 64 = 2^12: position · frequency < 2^32.
constexpr double kMinFactor = 1.0 / 64;
constexpr double kMaxFactor = 1 << 20;
static_assert(kMaxRopePositions * 64.0 * 64.0 <= kernels::kMaxAngle);

base::Result<void> CheckBetween(const std::string& key, double value, double low, double high) {
  if (!(value >= low && value <= high)) {
    return MakeError(ErrorCode::kBadData, "{} is {}; allowed are {} to {}", key, value, low, high);
  }
  return base::Success();
}

// The keys below architecture + ".rope.".
class RopeKeys {
 public:
  RopeKeys(const formats::GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(fmt::format("{}.rope.", architecture)) {}

  std::string Key(std::string_view name) const { return prefix_ + std::string(name); }
  base::Result<std::optional<double>> Float(std::string_view name) const {
    return file_.metadata().OptionalFloat(Key(name));
  }
  // A number that must be there, and lie between low and high.
  base::Result<double> Between(std::string_view name, std::optional<double> otherwise, double low,
                               double high) const {
    KV_TRY(const auto found, Float(name));
    if (!found && !otherwise) {
      return MakeError(ErrorCode::kBadData, "{} is missing, which this scaling needs", Key(name));
    }
    const double value = found ? *found : *otherwise;
    KV_TRY(CheckBetween(Key(name), value, low, high));
    return value;
  }

 private:
  const formats::GgufFile& file_;
  std::string prefix_;
};

base::Result<Llama3Scaling> ReadLlama3(const formats::GgufFile& file, const RopeKeys& keys,
                                       double factor) {
  Llama3Scaling scaling;
  scaling.factor = factor;
  KV_TRY(scaling.low_frequency,
         keys.Between("scaling.low_freq_factor", scaling.low_frequency, kMinFactor, kMaxFactor));
  KV_TRY(scaling.high_frequency,
         keys.Between("scaling.high_freq_factor", scaling.high_frequency, kMinFactor, kMaxFactor));
  if (scaling.high_frequency <= scaling.low_frequency) {
    return MakeError(ErrorCode::kBadData, "{} is {}; it must exceed {}, {}",
                     keys.Key("scaling.high_freq_factor"), scaling.high_frequency,
                     keys.Key("scaling.low_freq_factor"), scaling.low_frequency);
  }
  const std::string original = keys.Key("scaling.original_context_length");
  KV_TRY(const auto context, file.metadata().GetUint(original));
  scaling.original_context = static_cast<double>(context);
  KV_TRY(CheckBetween(original, scaling.original_context, 1, double{kMaxRopePositions}));
  return scaling;
}

// Linear scaling is what a factor without a type means, and an older key's name says.
base::Result<void> ReadScaling(const formats::GgufFile& file, const RopeKeys& keys,
                               RopeSettings& rope) {
  KV_TRY(const auto named, file.metadata().OptionalString(keys.Key("scaling.type")));
  const std::string_view type = named.value_or("linear");
  if (type != "none" && type != "linear" && type != "ntk" && type != "llama3") {
    return MakeError(ErrorCode::kBadData, "{} is {}; supported are none, linear, ntk and llama3",
                     keys.Key("scaling.type"), formats::Quoted(type));
  }
  KV_TRY(const auto attention, keys.Float("scaling.attn_factor"));
  if (attention && *attention != 1.0) {
    return MakeError(ErrorCode::kBadData, "{} is {}; allowed is 1", keys.Key("scaling.attn_factor"),
                     *attention);
  }
  if (type == "none") return base::Success();
  if (type == "linear") {
    KV_TRY(auto older, keys.Float("scale_linear"));
    if (older) {
      KV_TRY(CheckBetween(keys.Key("scale_linear"), *older, kMinFactor, kMaxFactor));
    } else if (!named) {
      older = 1.0;  // Nothing says that anything is scaled.
    }
    KV_TRY(const double factor, keys.Between("scaling.factor", older, kMinFactor, kMaxFactor));
    rope.factor = static_cast<float>(factor);
    return base::Success();
  }
  KV_TRY(const double factor, keys.Between("scaling.factor", std::nullopt, 1, kMaxFactor));
  if (type == "ntk") {
    if (rope.dimensions > 2) rope.base = NtkBase(rope.base, factor, rope.dimensions);
    return base::Success();
  }
  KV_TRY(const Llama3Scaling scaling, ReadLlama3(file, keys, factor));
  rope.divisors = Llama3Divisors(scaling, rope.base, rope.dimensions);
  return base::Success();
}

// The tensor holds what a scaling's type may say too; the tensor is what was made for this model.
base::Result<void> ReadDivisors(const formats::GgufFile& file, RopeSettings& rope) {
  const formats::GgufTensor* tensor = file.Find("rope_freqs.weight");
  if (tensor == nullptr) return base::Success();
  const tensor::Shape expected = {rope.dimensions / 2};
  if (tensor->shape != expected) {
    return MakeError(ErrorCode::kBadData,
                     "tensor 'rope_freqs.weight' has shape {}; the metadata asks for {}",
                     tensor->shape.ToString(), expected.ToString());
  }
  KV_TRY(const tensor::DType dtype, file.DTypeOf(*tensor));
  rope.divisors.resize(rope.dimensions / 2);
  tensor::ConvertToF32(dtype, tensor->data, rope.divisors);
  return base::Success();
}

base::Result<void> CheckDimensions(const std::string& key, std::uint64_t dimensions,
                                   std::uint64_t head_dim) {
  if (dimensions < 2 || dimensions % 2 != 0 || dimensions > head_dim) {
    return MakeError(ErrorCode::kBadData,
                     "{} is {}; allowed are even numbers from 2 to the head dimension, {}", key,
                     dimensions, head_dim);
  }
  return base::Success();
}

}  // namespace

base::Result<void> CheckRope(std::string_view architecture, const RopeSettings& rope,
                             std::uint64_t head_dim) {
  const std::string prefix = fmt::format("{}.rope.", architecture);
  KV_TRY(CheckDimensions(prefix + "dimension_count", rope.dimensions, head_dim));
  KV_TRY(CheckBetween(prefix + "freq_base", rope.base, 1, kMaxBase));
  KV_TRY(CheckBetween(prefix + "scaling.factor", rope.factor, kMinFactor, kMaxFactor));
  if (!rope.divisors.empty() && rope.divisors.size() != rope.dimensions / 2) {
    return MakeError(
        ErrorCode::kBadData, "tensor 'rope_freqs.weight' holds {} numbers; {} of {} needs {}",
        rope.divisors.size(), prefix + "dimension_count", rope.dimensions, rope.dimensions / 2);
  }
  for (const float divisor : rope.divisors) {
    KV_TRY(CheckBetween("a number of the tensor 'rope_freqs.weight'", divisor, kMinFactor,
                        kMaxFactor));
  }
  return base::Success();
}

std::vector<double> RopeFrequencies(const RopeSettings& rope) {
  std::vector<double> frequencies(rope.dimensions / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double power = -2.0 * static_cast<double>(i) / static_cast<double>(rope.dimensions);
    frequencies[i] = kernels::PowF64(rope.base, power) / rope.factor;
    if (!rope.divisors.empty()) frequencies[i] = frequencies[i] / rope.divisors[i];
  }
  return frequencies;
}

float NtkBase(float base, double factor, std::uint64_t dimensions) {
  const auto d = static_cast<double>(dimensions);
  return static_cast<float>(base * kernels::PowF64(factor, d / (d - 2)));
}

std::vector<float> Llama3Divisors(const Llama3Scaling& scaling, float base,
                                  std::uint64_t dimensions) {
  constexpr double kTwoPi = 6.283185307179586;
  RopeSettings unscaled;
  unscaled.dimensions = dimensions;
  unscaled.base = base;
  std::vector<float> divisors;
  for (const double frequency : RopeFrequencies(unscaled)) {
    const double periods = scaling.original_context * frequency / kTwoPi;  // In that context.
    double divisor = scaling.factor;
    if (periods > scaling.high_frequency) {
      divisor = 1;
    } else if (periods >= scaling.low_frequency) {
      const double share =
          (periods - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency);
      divisor = 1 / ((1 - share) / scaling.factor + share);
    }
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

base::Result<RopeSettings> ReadRope(const formats::GgufFile& file, std::string_view architecture,
                                    kernels::RopePairing pairing, std::uint64_t head_dim) {
  const RopeKeys keys(file, architecture);
  RopeSettings rope;
  rope.pairing = pairing;
  KV_TRY(const auto dimensions, file.metadata().OptionalUint(keys.Key("dimension_count")));
  rope.dimensions = dimensions.value_or(head_dim);
  KV_TRY(CheckDimensions(keys.Key("dimension_count"), rope.dimensions, head_dim));
  KV_TRY(const double base, keys.Between("freq_base", rope.base, 1, kMaxBase));
  rope.base = static_cast<float>(base);
  KV_TRY(ReadScaling(file, keys, rope));
  KV_TRY(ReadDivisors(file, rope));
  KV_TRY(CheckRope(architecture, rope, head_dim));
  return rope;
}

void WriteRope(std::string_view architecture, const RopeSettings& rope,
               formats::GgufWriter& writer) {
  const std::string prefix = fmt::format("{}.rope.", architecture);
  writer.Set(prefix + "dimension_count", static_cast<std::uint32_t>(rope.dimensions));
  writer.Set(prefix + "freq_base", rope.base);
  if (rope.factor != 1) {
    writer.Set(prefix + "scaling.type", "linear");
    writer.Set(prefix + "scaling.factor", rope.factor);
  }
  if (!rope.divisors.empty()) {
    writer.AddTensor("rope_freqs.weight", {rope.divisors.size()}, tensor::DType::kF32,
                     tensor::ConvertFromF32(tensor::DType::kF32, rope.divisors));
  }
}

}  // namespace kvasir::model
