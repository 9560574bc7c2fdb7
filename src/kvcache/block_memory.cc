#include "kvcache/block_memory.h"

#include <cstdlib>

#include "base/aligned.h"
#include "base/check.h"

namespace kvasir::kvcache {
namespace {

class SystemMemory : public BlockMemory {
 public:
  std::byte* Allocate(std::size_t bytes) override {
    KV_CHECK(bytes > 0 && bytes % base::kAlignment == 0);
    return static_cast<std::byte*>(std::aligned_alloc(base::kAlignment, bytes));
  }
  void Free(std::byte* data, std::size_t) override { std::free(data); }
};

}  // namespace

BlockMemory& BlockMemory::System() {
  static SystemMemory memory;
  return memory;
}

}  // namespace kvasir::kvcache
