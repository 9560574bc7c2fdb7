// Writes safetensors files (safetensors_reader.h has the source).
#ifndef KVASIR_FORMATS_SAFETENSORS_WRITER_H_
#define KVASIR_FORMATS_SAFETENSORS_WRITER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace kvasir::formats {

// Collects tensors; owns what it is given. Thread-compatible. The same calls give the same bytes:
// tensors in order of the calls, the header padded with blanks to a multiple of eight bytes,
// metadata {"format":"pt"}, which readers ask for.
class SafetensorsWriter {
 public:
  // Requires f32, f16 or bf16, bytes of that shape, and a name that was not added before.
  void Add(std::string_view name, const tensor::Shape& shape, tensor::DType dtype,
           std::vector<std::byte> data);

  std::vector<std::byte> Encode() const;
  // Replaces path whole or not at all. Holds one copy of the file's bytes meanwhile.
  base::Result<void> Write(base::Env& env, const std::string& path) const;

 private:
  std::string header_;  // Of the tensors so far, without its braces.
  std::vector<std::byte> data_;
};

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_SAFETENSORS_WRITER_H_
