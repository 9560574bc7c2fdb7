// Numbers as config.json holds them.
#ifndef KVASIR_MODEL_HF_NUMBER_H_
#define KVASIR_MODEL_HF_NUMBER_H_

#include <fmt/format.h>

#include <cstdlib>
#include <string>

namespace kvasir::model {

// The shortest text that reads back, as a double and then as f32, as this number. Requires a finite
// one.
inline std::string HfNumber(float value) {
  std::string text = fmt::format("{}", value);
  if (static_cast<float>(std::strtod(text.c_str(), nullptr)) == value) return text;
  return fmt::format("{}", static_cast<double>(value));
}

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_HF_NUMBER_H_
