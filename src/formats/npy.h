// Arrays of f32 in NumPy's .npy files.
//
// Source: NumPy's format description (numpy.lib.format). Written is version 1.0, C order, '<f4',
// byte for byte as NumPy does; read are versions 1.0, 2.0 and 3.0 of the same kind. Other element
// types, byte orders and Fortran order are refused.
#ifndef KVASIR_FORMATS_NPY_H_
#define KVASIR_FORMATS_NPY_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "tensor/shape.h"

namespace kvasir::formats {

struct NpyF32 {
  tensor::Shape shape;        // Row-major; rank 0 is a scalar, dimensions may be 0.
  std::vector<float> values;  // Exactly shape.ElementCount().
};

// Replaces path whole or not at all. kUsage if values are not as many as the shape says.
base::Result<void> WriteNpyF32(base::Env& env, const std::string& path, const tensor::Shape& shape,
                               std::span<const float> values);

// kIo if the file cannot be read, kBadData (naming file, value, what is allowed and offset) if it
// is not of the kind above or its length is not what its shape says.
base::Result<NpyF32> ReadNpyF32(base::Env& env, const std::string& path);
// The same from bytes; `name` stands in messages.
base::Result<NpyF32> ParseNpyF32(std::span<const std::byte> bytes, std::string_view name);

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_NPY_H_
