// Reads models of llama2.c: untrusted bytes in, checked descriptions out.
//
// Source: llama2.c (Karpathy), run.c and export.py, the "legacy" version 0: seven int32 (dim,
// hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len), then f32 weights, little-endian.
// A negative vocab_size says that the classifier is a matrix of its own. Later versions, which
// begin with "ak42", are refused.
#ifndef KVASIR_FORMATS_LLAMA2C_MODEL_H_
#define KVASIR_FORMATS_LLAMA2C_MODEL_H_

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
#include "tensor/shape.h"

namespace kvasir::formats {

// All are >= 1; heads divides dim into heads of even size, kv_heads divides heads.
struct Llama2cConfig {
  std::uint64_t dim = 0;
  std::uint64_t hidden_dim = 0;
  std::uint64_t layers = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t vocab = 0;
  std::uint64_t context = 0;
  bool shared_classifier = true;  // It is the token embedding.

  std::uint64_t head_dim() const { return dim / heads; }
  std::uint64_t kv_dim() const { return head_dim() * kv_heads; }
  friend bool operator==(const Llama2cConfig&, const Llama2cConfig&) = default;
};

// A view into the file's bytes.
struct Llama2cTensor {
  std::string_view name;            // llama2.c's own: "wq", "rms_att_weight", …
  std::uint64_t layer = 0;          // 0 for those of no layer.
  tensor::Shape shape;              // Row-major; a matrix is [outputs, inputs].
  std::span<const std::byte> data;  // f32, unaligned.
};

// Owner of the mapping, if it came from a file; movable, and views stay valid then. Immutable, so
// thread-safe. Invariant: the file holds exactly what its header says.
class Llama2cModel {
 public:
  // kIo if the file cannot be read, kBadData (naming file, value, what is allowed and offset) if it
  // is not of the kind above. Every size is checked against the file before memory is taken.
  static base::Result<Llama2cModel> Open(base::Env& env, const std::string& path);
  // The same from bytes, which must outlive the result; `name` stands in messages.
  static base::Result<Llama2cModel> Parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  const Llama2cConfig& config() const { return config_; }
  // In file order, without the tables of sines and cosines, which follow from the config.
  std::span<const Llama2cTensor> tensors() const { return tensors_; }
  // Null if there is none.
  const Llama2cTensor* Find(std::string_view tensor_name, std::uint64_t layer) const;

 private:
  Llama2cModel() = default;
  base::Result<void> ReadHeader(ByteCursor& in);
  base::Result<void> CheckSize(std::uint64_t bytes) const;
  base::Result<void> ReadTensors(ByteCursor& in);

  std::string name_;
  std::unique_ptr<base::FileBytes> mapping_;  // Null after Parse.
  Llama2cConfig config_;
  std::vector<Llama2cTensor> tensors_;
};

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_LLAMA2C_MODEL_H_
