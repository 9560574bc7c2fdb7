// Reads GGUF files: untrusted bytes in, checked descriptions out.
//
// Source: the GGUF specification of the ggml project (docs/gguf.md). Read are versions 2 and 3,
// little-endian; version 1, big-endian files and nested arrays are refused.
#ifndef KVASIR_FORMATS_GGUF_READER_H_
#define KVASIR_FORMATS_GGUF_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "formats/byte_cursor.h"
#include "formats/gguf_metadata.h"
#include "formats/gguf_type.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace kvasir::formats {

// Read and written alike. The format's text says 64; the ggml library, which nearly all readers
// use, keeps names in a field of 64 with a NUL at its end and refuses a name of 64.
inline constexpr std::size_t kGgufMaxTensorNameBytes = 63;
inline constexpr std::uint64_t kGgufDefaultAlignment = 32;

// A view into the file's bytes.
struct GgufTensor {
  std::string_view name;
  // Row-major, slowest-varying first: the file's list of dimensions turned about. Every dimension
  // is >= 1, and so is the rank.
  tensor::Shape shape;
  GgufType type = GgufType::kF32;
  std::span<const std::byte> data;  // Exactly the tensor's bytes; may be unaligned in memory.
};

// Owner of the mapping, if it came from a file or owned bytes; movable, and views stay valid then.
// Immutable, so thread-safe. The file must not be shortened while it is open. Invariants: names are
// unique, 1..64 bytes of UTF-8 without NUL; tensors lie inside the bytes, aligned, and do not
// overlap; memory held is a small multiple of the file's size at most.
class GgufFile {
 public:
  // kIo if the file cannot be read, kBadData (naming file, value, what is allowed and offset) if
  // it is not a GGUF file of the kinds above.
  static base::Result<GgufFile> Open(base::Env& env, const std::string& path);
  // The same from bytes, which must outlive the result; `name` stands in messages.
  static base::Result<GgufFile> Parse(std::span<const std::byte> bytes, std::string name);
  // The same from bytes that the result keeps.
  static base::Result<GgufFile> Own(std::unique_ptr<base::FileBytes> bytes, std::string name);

  std::span<const std::byte> bytes() const { return bytes_; }  // The whole file.
  const std::string& name() const { return name_; }
  std::uint32_t version() const { return version_; }
  std::uint64_t alignment() const { return alignment_; }
  const GgufMetadata& metadata() const { return metadata_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }  // In file order.

  const GgufTensor* Find(std::string_view tensor_name) const;  // Null if there is none.
  // An Error if there is none.
  base::Result<const GgufTensor*> Get(std::string_view tensor_name) const;
  // An Error naming the tensor and its type if that is only recognised.
  base::Result<tensor::DType> DTypeOf(const GgufTensor& tensor) const;

 private:
  GgufFile() = default;
  base::Result<void> ReadHeader(ByteCursor& in);
  base::Result<void> ReadAlignment();
  base::Result<void> ReadTensors(ByteCursor& in);
  base::Result<std::uint64_t> ReadTensorInfo(ByteCursor& in, GgufTensor& tensor) const;
  base::Result<void> PlaceTensors(std::uint64_t data_begin, std::span<const std::uint64_t> offsets);
  base::Result<void> CheckOverlap() const;
  base::Result<void> IndexNames();
  std::uint64_t OffsetOf(const void* position) const;

  std::string name_;
  std::unique_ptr<base::FileBytes> mapping_;  // Null after Parse.
  std::span<const std::byte> bytes_;
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = kGgufDefaultAlignment;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t metadata_count_ = 0;
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::vector<std::size_t> by_name_;  // Indices into tensors_, ascending by name.
};

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_GGUF_READER_H_
