#include "model/hf_rope.h"

#include <fmt/format.h>

#include <cstdint>

#include "formats/printable.h"
#include "model/hf_number.h"

namespace kvasir::model {
namespace {

constexpr double kMaxBase = 1e15;
// As files of the models have them; the factor differs between models.
constexpr Llama3Scaling kPublished = {
    .factor = 8, .low_frequency = 1, .high_frequency = 4, .original_context = 8192};

base::Result<Llama3Scaling> ReadLlama3(const HfKeys& keys, double factor) {
  Llama3Scaling scaling;
  scaling.factor = factor;
  KV_TRY(scaling.low_frequency, keys.Between("low_freq_factor", std::nullopt, 1.0 / 64, 1 << 20));
  KV_TRY(scaling.high_frequency, keys.Between("high_freq_factor", std::nullopt, 1.0 / 64, 1 << 20));
  if (scaling.high_frequency <= scaling.low_frequency) {
    return keys.Wrong("high_freq_factor", "is {}; it must exceed low_freq_factor, {}",
                      scaling.high_frequency, scaling.low_frequency);
  }
  KV_TRY(scaling.original_context, keys.Between("original_max_position_embeddings", std::nullopt, 1,
                                                double{kMaxRopePositions}));
  return scaling;
}

base::Result<void> ReadScaling(const HfKeys& keys, RopeSettings& rope) {
  constexpr std::string_view kRead[] = {"rope_type",        "type",
                                        "factor",           "low_freq_factor",
                                        "high_freq_factor", "original_max_position_embeddings",
                                        "rope_theta"};
  constexpr NeutralSetting kNeutral[] = {{"partial_rotary_factor", "1"}, {"attention_factor", "1"}};
  KV_TRY(const auto newer, keys.OptionalString("rope_type"));
  KV_TRY(const auto older, keys.OptionalString("type"));
  const std::string_view type = newer ? *newer : older.value_or("default");
  if (type != "default" && type != "linear" && type != "llama3") {
    return keys.Wrong(newer ? "rope_type" : "type",
                      "is {}; supported are default, linear and llama3", formats::Quoted(type));
  }
  KV_TRY(keys.RefuseOthers(kRead, {}, kNeutral));
  if (type == "default") return base::Success();
  KV_TRY(const double factor, keys.Between("factor", std::nullopt, 1.0 / 64, 1 << 20));
  if (type == "linear") {
    rope.factor = static_cast<float>(factor);
    return base::Success();
  }
  KV_TRY(const Llama3Scaling scaling, ReadLlama3(keys, factor));
  rope.divisors = Llama3Divisors(scaling, rope.base, rope.dimensions);
  return base::Success();
}

}  // namespace

base::Result<void> ReadHfRope(const HfKeys& keys, RopeSettings& rope) {
  const auto newer = keys.Find("rope_parameters");
  const auto older = keys.Find("rope_scaling");
  if (newer && older) return keys.Wrong("rope_parameters", "is there, and so is rope_scaling");
  const auto object = newer ? newer : older;
  const std::string where = newer ? "rope_parameters." : "rope_scaling.";
  if (object && !object->is_object()) {
    return keys.Wrong(newer ? "rope_parameters" : "rope_scaling", "is {}; it must be an object",
                      object->Text());
  }
  KV_TRY(double base, keys.Between("rope_theta", 10000.0, 1, kMaxBase));
  if (!object) {
    rope.base = static_cast<float>(base);
    return base::Success();
  }
  const HfKeys scaling = keys.Inside(*object, where);
  KV_TRY(base, scaling.Between("rope_theta", base, 1, kMaxBase));
  rope.base = static_cast<float>(base);
  return ReadScaling(scaling, rope);
}

base::Result<std::string> HfRopeText(const RopeSettings& rope) {
  std::string text = fmt::format("\"rope_theta\": {}", HfNumber(rope.base));
  if (!rope.divisors.empty()) {
    Llama3Scaling scaling = kPublished;
    scaling.factor = rope.divisors.back();  // The lowest frequency's, which is scaled in full.
    if (rope.factor != 1 || rope.divisors != Llama3Divisors(scaling, rope.base, rope.dimensions)) {
      return base::MakeError(base::ErrorCode::kBadData,
                             "the numbers of the tensor 'rope_freqs.weight' are not those of a "
                             "scaling that config.json can name");
    }
    return text + fmt::format(
                      ",\n  \"rope_scaling\": {{\"rope_type\": \"llama3\", \"factor\": {}, "
                      "\"low_freq_factor\": {}, \"high_freq_factor\": {}, "
                      "\"original_max_position_embeddings\": {}}}",
                      scaling.factor, scaling.low_frequency, scaling.high_frequency,
                      scaling.original_context);
  }
  if (rope.factor == 1) return text;
  return text + fmt::format(",\n  \"rope_scaling\": {{\"rope_type\": \"linear\", \"factor\": {}}}",
                            HfNumber(rope.factor));
}

}  // namespace kvasir::model
