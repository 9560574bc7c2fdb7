#include "eval/random_weights.h"

#include <memory>
#include <span>
#include <vector>

#include "eval/random_stream.h"
#include "model/rounded_source.h"

namespace kvasir::eval {

model::TensorSource RandomWeights(std::uint64_t seed) {
  struct State {
    RandomStream random;
    std::vector<float> values;
  };
  auto state = std::make_shared<State>(State{RandomStream(seed), {}});
  return [state](const model::TensorSpec& spec) -> base::Result<std::span<const float>> {
    const bool gain = spec.name.ends_with("norm.weight");
    const bool matrix = spec.shape.rank() >= 2;
    const float scale = matrix ? 0.05f * 1.7320508f : 0.1f;
    state->values.resize(spec.shape.ElementCount().value());
    for (float& value : state->values) {
      value = (gain ? 1.0f : 0.0f) + scale * state->random.Symmetric();
    }
    return std::span<const float>(state->values);
  };
}

model::TensorSource RandomWeights(std::uint64_t seed, tensor::DType dtype) {
  const model::TensorSource plain = RandomWeights(seed);
  return dtype == tensor::DType::kF32 ? plain : model::RoundedSource(plain, dtype);
}

base::Result<void> CheckRandomModel(const base::Result<void>& checked, std::uint64_t numbers) {
  if (!checked) {
    base::Error error = checked.error();
    error.code = base::ErrorCode::kUsage;
    return error;
  }
  constexpr std::uint64_t kMaxNumbers = std::uint64_t{1} << 32;
  if (numbers > kMaxNumbers) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "a model of {} random parameters is not made; at most {} are allowed",
                           numbers, kMaxNumbers);
  }
  return base::Success();
}

}  // namespace kvasir::eval
