#include "kvcache/block_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace kvasir::kvcache {
namespace {

TEST(BlockMemoryTest, SystemMemoryIsAlignedAndWritable) {
  BlockMemory& memory = BlockMemory::System();
  for (const std::size_t bytes : {64u, 128u, 4096u, 65536u + 64u}) {
    std::byte* data = memory.Allocate(bytes);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
    std::memset(data, 0x5A, bytes);
    EXPECT_EQ(data[bytes - 1], std::byte{0x5A});
    memory.Free(data, bytes);
  }
}

TEST(BlockMemoryDeathTest, OddSizesAreAProgrammersError) {
  EXPECT_DEATH(BlockMemory::System().Allocate(0), "bytes > 0");
  EXPECT_DEATH(BlockMemory::System().Allocate(100), "bytes > 0");
}

}  // namespace
}  // namespace kvasir::kvcache
