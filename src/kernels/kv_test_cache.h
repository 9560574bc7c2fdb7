// For tests: blocks of keys and values of any types, in which whatever was not written is not a
// number and whatever no query sees is not there.
#ifndef KVASIR_KERNELS_KV_TEST_CACHE_H_
#define KVASIR_KERNELS_KV_TEST_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/kv_address.h"
#include "kernels/kv_view.h"

namespace kvasir::kernels {

inline constexpr KvType kKeyTypes[] = {KvType::kF32,  KvType::kF16,  KvType::kBf16,
                                       KvType::kInt8, KvType::kInt4, KvType::kInt4Channel};
inline constexpr KvType kValueTypes[] = {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8,
                                         KvType::kInt4};

struct KvTestShape {
  KvType k_type = KvType::kF32;
  KvType v_type = KvType::kF32;
  std::size_t kv_heads = 1;
  std::size_t head_dim = 16;
  std::size_t block_tokens = 16;
  std::size_t group = 32;  // kInt4Channel

  std::string Name() const {
    return "K " + std::string(KvTypeName(k_type)) + " V " + std::string(KvTypeName(v_type)) + " " +
           std::to_string(kv_heads) + " x " + std::to_string(head_dim) + ", blocks of " +
           std::to_string(block_tokens) + ", groups of " + std::to_string(group);
  }
};

class KvTestCache {
 public:
  KvTestCache(const KvTestShape& shape, std::size_t length) : shape_(shape) {
    const std::size_t count = (length + shape.block_tokens - 1) / shape.block_tokens;
    const std::size_t tiles = shape.kv_heads * shape.block_tokens / kLanes;
    const std::size_t k_bytes = tiles * KTileBytes(shape.k_type, shape.head_dim);
    const std::size_t v_bytes = tiles * VTileBytes(shape.v_type, shape.head_dim);
    v_offset_ = RoundUp(k_bytes);
    scale_offset_ = RoundUp(v_offset_ + v_bytes);
    std::size_t bytes = v_offset_ + v_bytes;
    const bool by_channel = shape.k_type == KvType::kInt4Channel;
    if (by_channel) {
      const std::size_t groups = std::max<std::size_t>(1, shape.block_tokens / shape.group);
      bytes = scale_offset_ + shape.kv_heads * groups * ChannelScaleBytes(shape.head_dim);
    }
    for (std::size_t b = 0; b < count; ++b) {
      Add(bytes, blocks_, addresses_);
      if (by_channel)
        Add(tiles * KTileBytes(KvType::kF32, shape.head_dim), tails_, tail_addresses_);
    }
  }

  // k, v [kv_heads · head_dim]. Positions ascending; the group that this completes is rounded.
  void Store(std::size_t position, const float* k, const float* v) {
    StoreKv(View(), position, k, v);
    if (shape_.k_type != KvType::kInt4Channel || (position + 1) % shape_.group != 0) return;
    for (std::size_t head = 0; head < shape_.kv_heads; ++head) {
      CompleteKeyGroup(View(), position / shape_.group, head);
    }
  }

  // Takes away the blocks that no query from `first` on sees, and their full-precision keys.
  void Free(std::size_t first, std::size_t window, std::size_t sinks) {
    const std::size_t size = shape_.block_tokens;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if ((b + 1) * size <= FirstVisible(first, window) && b * size >= sinks) {
        Drop(b, blocks_, addresses_);
      }
      if (!tails_.empty() && (b + 1) * size <= first / shape_.group * shape_.group) {
        Drop(b, tails_, tail_addresses_);
      }
    }
  }

  KvView View() const {
    return {.blocks = addresses_.data(),
            .k_offset = 0,
            .v_offset = v_offset_,
            .block_tokens = static_cast<std::uint32_t>(shape_.block_tokens),
            .kv_heads = static_cast<std::uint32_t>(shape_.kv_heads),
            .head_dim = static_cast<std::uint32_t>(shape_.head_dim),
            .k_type = shape_.k_type,
            .v_type = shape_.v_type,
            .group = static_cast<std::uint32_t>(shape_.group),
            .k_scale_offset = scale_offset_,
            .tail_blocks = tail_addresses_.data(),
            .tail_offset = 0};
  }

 private:
  static constexpr auto kAlign = std::align_val_t(64);
  struct Delete {
    void operator()(std::byte* p) const { ::operator delete(p, kAlign); }
  };
  using Block = std::unique_ptr<std::byte, Delete>;

  static std::size_t RoundUp(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  // Of exactly so many bytes, so that a sanitizer sees what is read beyond them.
  static void Add(std::size_t bytes, std::vector<Block>& blocks, std::vector<std::byte*>& table) {
    blocks.emplace_back(static_cast<std::byte*>(::operator new(bytes, kAlign)));
    std::memset(blocks.back().get(), 0xFF, bytes);  // Not a number in every type that has that.
    table.push_back(blocks.back().get());
  }
  static void Drop(std::size_t b, std::vector<Block>& blocks, std::vector<std::byte*>& table) {
    blocks[b].reset();
    table[b] = nullptr;
  }

  KvTestShape shape_;
  std::size_t v_offset_ = 0;
  std::size_t scale_offset_ = 0;
  std::vector<Block> blocks_, tails_;
  std::vector<std::byte*> addresses_, tail_addresses_;
};

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_KV_TEST_CACHE_H_
