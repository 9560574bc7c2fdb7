// KeyValueStore: bytes under keys, in a place that other processes share.
#ifndef KVASIR_STORE_KEY_VALUE_H_
#define KVASIR_STORE_KEY_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"

namespace kvasir::store {

// The chain hash of a block's text, and the cache group whose block it is.
struct BlockKey {
  base::Hash128 name;
  std::uint32_t group = 0;
  friend bool operator==(const BlockKey&, const BlockKey&) = default;
};

struct KeyValue {
  BlockKey key;
  std::span<const std::byte> value;
};

// What became of a batch of values.
struct PutCounts {
  std::uint64_t written = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t dropped = 0;  // Too large, or no room could be made.
  std::uint64_t evicted = 0;  // Values given up for room.
};

// Knows nothing of what values mean. One thread may read while another writes; each of the two
// groups of calls is single-threaded. Errors are kIo: the operation failed or took too long, and
// the next one may succeed.
class KeyValueStore {
 public:
  // Bytes that live only during the call.
  using Visit = std::function<void(std::size_t index, std::span<const std::byte> value)>;

  virtual ~KeyValueStore() = default;

  // For messages: "LMDB in 'cache'".
  virtual std::string_view name() const = 0;

  // What a person should be told of how it was opened; mostly nothing.
  virtual std::string notice() const { return {}; }

  // The reader's: whether each is there; visits those that are, in order.
  virtual base::Result<std::vector<bool>> Has(std::span<const BlockKey> keys) = 0;
  virtual base::Result<void> Get(std::span<const BlockKey> keys, const Visit& visit) = 0;

  // The writer's. Values whose key is there already are not written again, but count as used.
  virtual base::Result<PutCounts> Put(std::span<const KeyValue> values) = 0;
  // These were of use: others should go before them.
  virtual base::Result<void> Touch(std::span<const BlockKey> keys) = 0;
  virtual base::Result<void> Remove(std::span<const BlockKey> keys) = 0;
};

}  // namespace kvasir::store

#endif  // KVASIR_STORE_KEY_VALUE_H_
