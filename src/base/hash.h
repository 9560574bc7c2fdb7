// 64- and 128-bit content hashes (XXH3). Not for secrets: collisions are checked for by comparing
// contents wherever one could change an answer.
#ifndef KVASIR_BASE_HASH_H_
#define KVASIR_BASE_HASH_H_

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvasir::base {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

inline std::uint64_t HashBytes64(std::span<const std::byte> bytes, std::uint64_t seed = 0) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

inline Hash128 HashBytes128(std::span<const std::byte> bytes, std::uint64_t seed = 0) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {hash.low64, hash.high64};
}

template <typename T>
std::uint64_t HashSpan64(std::span<const T> values, std::uint64_t seed = 0) {
  return HashBytes64(std::as_bytes(values), seed);
}

}  // namespace kvasir::base

#endif  // KVASIR_BASE_HASH_H_
