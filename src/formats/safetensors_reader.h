// Reads safetensors files: untrusted bytes in, checked descriptions out.
//
// Source: the format's description in the safetensors project's README: a header's length (u64,
// little-endian), the header (JSON: name → dtype, shape, data_offsets), then the tensors' bytes,
// without holes. The format has no version.
#ifndef KVASIR_FORMATS_SAFETENSORS_READER_H_
#define KVASIR_FORMATS_SAFETENSORS_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace kvasir::formats {

inline constexpr std::uint64_t kSafetensorsMaxHeaderBytes = 100'000'000;  // As the project has it.

struct SafetensorsTensor {
  std::string name;
  tensor::Shape shape;                 // Row-major; [] for a single number. A dimension may be 0.
  std::string_view type;               // "F32", "BF16", "I64": as in the file.
  std::optional<tensor::DType> dtype;  // Nothing for a type that is only recognised.
  std::span<const std::byte> data;     // Exactly the tensor's bytes; may be unaligned in memory.
};

// Owner of the mapping, if it came from a file; movable, and views stay valid then. Immutable, so
// thread-safe. The file must not be shortened while it is open.
// Invariants: names are unique, 1 to 65535 bytes without NUL; the tensors' bytes lie one after the
// other from the end of the header to the end of the file, without holes and overlaps; memory held
// is a small multiple of the header's size.
class SafetensorsFile {
 public:
  // kIo if the file cannot be read, kBadData (naming file, value and what is allowed) if it is not
  // of this format, holds an unknown type or more than four dimensions.
  static base::Result<SafetensorsFile> Open(base::Env& env, const std::string& path);
  // The same from bytes, which must outlive the result; `name` stands in messages.
  static base::Result<SafetensorsFile> Parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  std::span<const SafetensorsTensor> tensors() const { return tensors_; }  // In order of data.
  const SafetensorsTensor* Find(std::string_view tensor_name) const;       // Null if there is none.

 private:
  SafetensorsFile() = default;
  base::Result<void> ReadTensors(std::string_view header, std::span<const std::byte> data);
  base::Result<void> CheckPlaces(std::span<const std::byte> data) const;
  void IndexNames();

  std::string name_;
  std::unique_ptr<base::FileBytes> mapping_;  // Null after Parse.
  std::vector<SafetensorsTensor> tensors_;
  std::vector<std::size_t> by_name_;  // Indices into tensors_, ascending by name.
};

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_SAFETENSORS_READER_H_
