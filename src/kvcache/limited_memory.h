// For tests: block memory that refuses on demand and knows what it has lent.
#ifndef KVASIR_KVCACHE_LIMITED_MEMORY_H_
#define KVASIR_KVCACHE_LIMITED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kvcache/block_memory.h"

namespace kvasir::kvcache {

// Lends from the system's memory. Single-threaded.
class LimitedMemory : public BlockMemory {
 public:
  // Every request after this many more is refused.
  void AllowBlocks(std::uint64_t count) { blocks_left_ = count; }
  std::uint64_t lent_bytes() const { return lent_bytes_; }

  std::byte* Allocate(std::size_t bytes) override {
    if (blocks_left_ == 0) return nullptr;
    --blocks_left_;
    lent_bytes_ += bytes;
    return System().Allocate(bytes);
  }
  void Free(std::byte* data, std::size_t bytes) override {
    lent_bytes_ -= bytes;
    System().Free(data, bytes);
  }

 private:
  std::uint64_t blocks_left_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t lent_bytes_ = 0;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_LIMITED_MEMORY_H_
