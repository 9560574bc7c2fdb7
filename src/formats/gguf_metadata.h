// The metadata of a GGUF file: named values, in file order, with typed look-up.
#ifndef KVASIR_FORMATS_GGUF_METADATA_H_
#define KVASIR_FORMATS_GGUF_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/byte_cursor.h"
#include "formats/gguf_value.h"

namespace kvasir::formats {

inline constexpr std::size_t kGgufMaxKeyBytes = 65535;

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

// A view: valid as long as the file's bytes. Immutable, so thread-safe.
// Invariants: keys are unique, 1..65535 bytes of UTF-8 without NUL; by_key_ orders entries_.
class GgufMetadata {
 public:
  GgufMetadata() = default;

  // Reads `count` entries. Memory is a small multiple of the bytes they take in the file.
  static base::Result<GgufMetadata> Read(ByteCursor& in, std::uint64_t count);

  std::span<const GgufEntry> entries() const { return entries_; }
  const GgufValue* Find(std::string_view key) const;  // Null if there is none.
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // Get…: an Error if the key is missing, of another type or does not fit.
  // Optional…: nothing if the key is missing; else as Get…. What fits: gguf_value.h.
  base::Result<std::uint64_t> GetUint(std::string_view key) const;
  base::Result<std::int64_t> GetInt(std::string_view key) const;
  base::Result<double> GetFloat(std::string_view key) const;
  base::Result<bool> GetBool(std::string_view key) const;
  base::Result<std::string_view> GetString(std::string_view key) const;
  base::Result<std::vector<std::string_view>> GetStringArray(std::string_view key) const;
  base::Result<std::vector<float>> GetFloatArray(std::string_view key) const;
  base::Result<std::vector<std::int64_t>> GetIntArray(std::string_view key) const;

  base::Result<std::optional<std::uint64_t>> OptionalUint(std::string_view key) const;
  base::Result<std::optional<std::int64_t>> OptionalInt(std::string_view key) const;
  base::Result<std::optional<double>> OptionalFloat(std::string_view key) const;
  base::Result<std::optional<bool>> OptionalBool(std::string_view key) const;
  base::Result<std::optional<std::string_view>> OptionalString(std::string_view key) const;
  base::Result<std::optional<std::vector<std::string_view>>> OptionalStringArray(
      std::string_view key) const;
  base::Result<std::optional<std::vector<float>>> OptionalFloatArray(std::string_view key) const;
  base::Result<std::optional<std::vector<std::int64_t>>> OptionalIntArray(
      std::string_view key) const;

 private:
  template <typename T>
  base::Result<T> Get(std::string_view key, std::optional<T> (GgufValue::*as)() const) const;
  template <typename T>
  base::Result<std::optional<T>> Optional(std::string_view key,
                                          std::optional<T> (GgufValue::*as)() const) const;

  std::string file_;  // For messages.
  std::vector<GgufEntry> entries_;
  std::vector<std::size_t> by_key_;  // Indices into entries_, ascending by key.
};

// Refuses a key or tensor name (`what`) that is empty, longer than max_bytes, not UTF-8 or holds a
// NUL. `offset` is where it stands in the file.
base::Result<void> CheckGgufName(std::string_view file, std::uint64_t offset, std::string_view what,
                                 std::string_view name, std::size_t max_bytes);

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_GGUF_METADATA_H_
