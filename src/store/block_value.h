// What a store keeps of a block: a header that says what it is, its bytes, and a checksum.
#ifndef KVASIR_STORE_BLOCK_VALUE_H_
#define KVASIR_STORE_BLOCK_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "kvcache/block_store.h"

namespace kvasir::store {

// Version 1, little-endian; docs/formats/store-value.md. A change of any field raises the version,
// and values of other versions are refused.
inline constexpr std::uint32_t kBlockValueVersion = 1;

// How the payload is written.
enum class Encoding : std::uint32_t {
  kRaw = 0,
  kZstd = 1,        // Of the block's bytes.
  kZstdPlanes = 2,  // Of the first bytes of all 4-byte words, then the second ones, …
};

enum class Compression { kOff, kOn };

// A value being made in two halves, so that the thread that owns the block only copies it: Begin
// there, Finish on any other. room: of an earlier value, whose memory is used again.
std::vector<std::byte> BeginBlockValue(const kvcache::BlockIdentity& identity,
                                       std::span<const std::byte> block,
                                       std::vector<std::byte> room = {});
// Compresses the payload, where it is asked for and saves an eighth at least, and writes the
// checksum. Requires what BeginBlockValue returned.
void FinishBlockValue(Compression compression, std::vector<std::byte>& value);

// The block, if these bytes are exactly a value of this identity; else null. Never reads beyond
// them, and allocates no more than twice identity.bytes.
std::optional<base::AlignedArray<std::byte>> ReadBlockValue(const kvcache::BlockIdentity& identity,
                                                            std::span<const std::byte> value);

}  // namespace kvasir::store

#endif  // KVASIR_STORE_BLOCK_VALUE_H_
