#include "training/parameters.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

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

// Whether the rows of this tensor go on where those of the one before it end, in one product.
bool ContinuesProduct(std::string_view previous, std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kFollowers[] = {
      {"attn_q.weight", "attn_k.weight"},
      {"attn_k.weight", "attn_v.weight"},
      {"attn_q.bias", "attn_k.bias"},
      {"attn_k.bias", "attn_v.bias"},
      {"ffn_gate.weight", "ffn_up.weight"}};
  const auto is = [&](const auto& pair) {
    return previous.ends_with(pair.first) && name.ends_with(pair.second);
  };
  return std::any_of(std::begin(kFollowers), std::end(kFollowers), is);
}

}  // namespace

ParameterLayout::ParameterLayout(const ModelConfig& config) {
  for (const model::TensorSpec& spec : config.Tensors()) {
    const std::size_t size = spec.shape.ElementCount().value();
    const bool continues = !slices_.empty() && ContinuesProduct(slices_.back().name, spec.name);
    if (!continues) size_ = (size_ + 15) / 16 * 16;
    slices_.push_back({spec.name, size_, size, spec.shape.rank() >= 2});
    size_ += size;
  }
  size_ = (size_ + 15) / 16 * 16;
}

const ParameterSlice* ParameterLayout::FindIfThere(const std::string& name) const {
  const auto found = std::find_if(slices_.begin(), slices_.end(),
                                  [&](const ParameterSlice& slice) { return slice.name == name; });
  return found == slices_.end() ? nullptr : &*found;
}

const ParameterSlice& ParameterLayout::Find(const std::string& name) const {
  const ParameterSlice* slice = FindIfThere(name);
  KV_CHECK(slice != nullptr);
  return *slice;
}

void Initialise(const ParameterLayout& layout, std::uint64_t layers, std::uint64_t seed,
                std::span<float> parameters) {
  const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(layers));
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
