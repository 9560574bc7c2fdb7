// For tests: keys and values to put into a store.
#ifndef KVASIR_STORE_STORE_TEST_VALUES_H_
#define KVASIR_STORE_STORE_TEST_VALUES_H_

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "base/hash.h"
#include "store/key_value.h"

namespace kvasir::store {

inline BlockKey TestKey(std::uint64_t number) {
  const base::Hash128 name = base::HashBytes128(std::as_bytes(std::span(&number, 1)));
  return {name, static_cast<std::uint32_t>(number % 3)};
}

// Of this number and size; ends with a hash of the rest.
inline std::vector<std::byte> TestValue(std::uint64_t number, std::size_t size) {
  std::mt19937_64 random(number);
  std::vector<std::byte> value(size + sizeof(std::uint64_t));
  for (std::size_t i = 0; i < size; ++i) value[i] = static_cast<std::byte>(random());
  const std::uint64_t hash = base::HashBytes64(std::span(value).first(size), number);
  std::memcpy(value.data() + size, &hash, sizeof(hash));
  return value;
}

inline bool IsTestValue(std::uint64_t number, std::span<const std::byte> value) {
  if (value.size() < sizeof(std::uint64_t)) return false;
  const std::size_t size = value.size() - sizeof(std::uint64_t);
  std::uint64_t hash = 0;
  std::memcpy(&hash, value.data() + size, sizeof(hash));
  return hash == base::HashBytes64(value.first(size), number);
}

}  // namespace kvasir::store

#endif  // KVASIR_STORE_STORE_TEST_VALUES_H_
