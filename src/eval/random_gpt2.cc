#include "eval/random_gpt2.h"

#include <span>
#include <vector>

#include "eval/random_stream.h"

namespace kvasir::eval {

base::Result<std::unique_ptr<model::Gpt2Model>> MakeRandomGpt2(const model::Gpt2Config& config,
                                                               std::uint64_t seed) {
  if (auto checked = model::CheckConfig(config); !checked) {
    base::Error error = checked.error();
    error.code = base::ErrorCode::kUsage;  // The config came from flags, not from a file.
    return error;
  }
  constexpr std::uint64_t kMaxParameters = std::uint64_t{1} << 32;
  if (const std::uint64_t count = model::ParameterCount(config); count > kMaxParameters) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "a model of {} random parameters is not made; at most {} are allowed",
                           count, kMaxParameters);
  }
  RandomStream random(seed);
  std::vector<float> values;
  return model::Gpt2Model::Make(
      config, [&](const model::TensorSpec& spec) -> base::Result<std::span<const float>> {
        const bool gain = spec.name.ends_with("norm.weight");
        const bool matrix = spec.shape.rank() == 2;
        const float scale = matrix ? 0.05f * 1.7320508f : 0.1f;
        values.resize(spec.shape.ElementCount().value());
        for (float& value : values) value = (gain ? 1.0f : 0.0f) + scale * random.Symmetric();
        return std::span<const float>(values);
      });
}

}  // namespace kvasir::eval
