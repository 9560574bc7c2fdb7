#include "training/parameters.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/philox.h"
#include "kernels/scalar_math.h"

namespace kvasir::training {
namespace {

// A standard normal number (Box and Muller 1958), by the contract's own functions.
double Normal(std::uint64_t seed, std::uint32_t tensor, std::size_t element) {
  const auto w = base::Philox4x32(
      seed, {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32), tensor,
             0x494E4954u /* "INIT" */});
  const double u = 1.0 - base::UniformDouble(w[0], w[1]);  // in (0, 1]
  const double angle = 6.283185307179586 * base::UniformDouble(w[2], w[3]);
  return std::sqrt(-2.0 * kernels::LogF64(u)) * kernels::CosF64(angle);
}

}  // namespace

ParameterLayout::ParameterLayout(const model::Gpt2Config& config) {
  for (const model::TensorSpec& spec : model::Gpt2Tensors(config)) {
    const std::size_t size = spec.shape.ElementCount().value();
    slices_.push_back({spec.name, size_, size, spec.shape.rank() == 2});
    size_ += (size + 15) / 16 * 16;
  }
}

const ParameterSlice& ParameterLayout::Find(const std::string& name) const {
  const auto found = std::find_if(slices_.begin(), slices_.end(),
                                  [&](const ParameterSlice& slice) { return slice.name == name; });
  KV_CHECK(found != slices_.end());
  return *found;
}

void Initialise(const ParameterLayout& layout, const model::Gpt2Config& config, std::uint64_t seed,
                std::span<float> parameters) {
  const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(config.layers));
  std::uint32_t index = 0;
  for (const ParameterSlice& slice : layout.slices()) {
    float* values = parameters.data() + slice.begin;
    const bool norm = slice.name.find("norm.weight") != std::string::npos;
    const bool bias = slice.name.find(".bias") != std::string::npos;
    const bool writes_residual = slice.name.find("attn_output") != std::string::npos ||
                                 slice.name.find("ffn_down") != std::string::npos;
    for (std::size_t i = 0; i < slice.size; ++i) {
      if (norm || bias) {
        values[i] = norm ? 1.0f : 0.0f;
      } else {
        values[i] =
            static_cast<float>((writes_residual ? residual : 0.02) * Normal(seed, index, i));
      }
    }
    ++index;
  }
}

}  // namespace kvasir::training
