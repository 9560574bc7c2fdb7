// Where the bytes of blocks come from: an interface, so that tests can refuse a block.
#ifndef KVASIR_KVCACHE_BLOCK_MEMORY_H_
#define KVASIR_KVCACHE_BLOCK_MEMORY_H_

#include <cstddef>

namespace kvasir::kvcache {

// Thread-compatible, unless an implementation promises more.
class BlockMemory {
 public:
  virtual ~BlockMemory() = default;

  // The heap. Thread-safe.
  static BlockMemory& System();

  // 64-byte aligned storage with unspecified contents; null if there is none left. Requires bytes
  // to be a positive multiple of 64.
  virtual std::byte* Allocate(std::size_t bytes) = 0;
  // Takes back what Allocate(bytes) returned.
  virtual void Free(std::byte* data, std::size_t bytes) = 0;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_BLOCK_MEMORY_H_
