// Writes GGUF files, version 3, little-endian, alignment 32.
//
// Source: the GGUF specification of the ggml project (docs/gguf.md).
#ifndef KVASIR_FORMATS_GGUF_WRITER_H_
#define KVASIR_FORMATS_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "formats/gguf_value.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace kvasir::formats {

// Collects metadata and tensors; owns copies of what it is given, but for AddTensorView.
// Thread-compatible. The same calls give the same bytes. What cannot be written (an empty or
// overlong name, a size that is not the shape's, …) is an Error (kUsage) of Encode and Write.
class GgufWriter {
 public:
  // A key set again keeps its place and takes the new value.
  void Set(std::string_view key, std::uint32_t value);
  void Set(std::string_view key, std::uint64_t value);
  void Set(std::string_view key, std::int32_t value);
  void Set(std::string_view key, float value);
  void Set(std::string_view key, bool value);
  void Set(std::string_view key, std::string_view value);
  // Without this one a literal would become a bool.
  void Set(std::string_view key, const char* value) { Set(key, std::string_view(value)); }
  void Set(std::string_view key, std::span<const std::string> values);
  void Set(std::string_view key, std::span<const std::string_view> values);
  void Set(std::string_view key, std::span<const float> values);
  void Set(std::string_view key, std::span<const std::int32_t> values);
  void Set(std::string_view key, std::span<const std::uint32_t> values);
  void Set(std::string_view key, const std::vector<bool>& values);
  // A value of another file, as it stands there.
  void Set(std::string_view key, const GgufValue& value);

  // Row-major shape, slowest-varying first; the file lists the dimensions the other way round.
  void AddTensor(std::string_view name, const tensor::Shape& shape, tensor::DType dtype,
                 std::vector<std::byte> data);
  // data must stay valid until the last Encode or Write.
  void AddTensorView(std::string_view name, const tensor::Shape& shape, tensor::DType dtype,
                     std::span<const std::byte> data);

  // The file's bytes.
  base::Result<std::vector<std::byte>> Encode() const;
  // Replaces path whole or not at all (base::WriteFileAtomic). Holds one copy of the file's bytes
  // meanwhile.
  base::Result<void> Write(base::Env& env, const std::string& path) const;

 private:
  struct Entry {
    std::string key;
    std::vector<std::byte> encoded;  // Type and value as in the file.
  };
  struct Tensor {
    std::string name;
    tensor::Shape shape;
    tensor::DType dtype;
    std::vector<std::byte> owned;
    std::span<const std::byte> view;  // Used if owned is empty.
    std::span<const std::byte> data() const { return owned.empty() ? view : owned; }
  };
  std::vector<std::byte>& Slot(std::string_view key, GgufValueType type);
  template <typename T>
  void SetScalar(std::string_view key, GgufValueType type, T value);
  template <typename T>
  void SetArray(std::string_view key, GgufValueType element_type, std::span<const T> values);
  base::Result<void> Check() const;

  std::vector<Entry> entries_;
  std::vector<Tensor> tensors_;
};

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_GGUF_WRITER_H_
