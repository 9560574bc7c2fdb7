#include "kernels/kv_store.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/kv_address.h"
#include "kernels/kv_numbers.h"
#include "kernels/kv_rounding.h"

namespace kvasir::kernels {
namespace {

// A row in the form in which it is stored, one number after the other.
struct RoundedRow {
  std::array<std::uint8_t, kMaxHeadDim> nibbles;
  std::array<std::int8_t, kMaxHeadDim> bytes;
  RowScale scale;
};

void RoundRow(KvType type, const float* x, std::size_t head_dim, RoundedRow& row) {
  if (TileScalesBytes(type) == 0) return;
  KV_CHECK(head_dim <= kMaxHeadDim);
  if (type == KvType::kInt8) row.scale = RoundInt8(x, head_dim, row.bytes.data());
  if (type == KvType::kInt4) row.scale = RoundInt4(x, head_dim, row.nibbles.data());
}

void StoreScale(std::byte* tile, KvType type, std::size_t lane, std::size_t head_dim,
                RowScale scale) {
  std::uint16_t* scales = TileScales(tile, type, head_dim);
  scales[lane] = scale.scale;
  if (type == KvType::kInt4) scales[kLanes + lane] = scale.minimum;
}

void StoreKey(std::byte* tile, KvType type, std::size_t lane, const float* x,
              std::size_t head_dim) {
  RoundedRow row;
  RoundRow(type, x, head_dim, row);
  switch (type) {
    case KvType::kF32:
      for (std::size_t d = 0; d < head_dim; ++d) {
        reinterpret_cast<float*>(tile)[d * kLanes + lane] = x[d];
      }
      return;
    case KvType::kF16:
    case KvType::kBf16:
      for (std::size_t d = 0; d < head_dim; ++d) {
        reinterpret_cast<std::uint16_t*>(tile)[d * kLanes + lane] =
            type == KvType::kF16 ? RoundF16(x[d]) : RoundBf16(x[d]);
      }
      return;
    case KvType::kInt8:
      for (std::size_t d = 0; d < head_dim; ++d) {
        reinterpret_cast<std::int8_t*>(tile)[d * kLanes + lane] = row.bytes[d];
      }
      break;
    default:
      for (std::size_t d = 0; d < head_dim; d += 2) {
        const unsigned high = d + 1 < head_dim ? row.nibbles[d + 1] : 0u;
        tile[d / 2 * kLanes + lane] = static_cast<std::byte>(row.nibbles[d] | high << 4);
      }
      break;
  }
  StoreScale(tile, type, lane, head_dim, row.scale);
}

// A value row's numbers at their places (ValueNibble), run by run.
void StoreNibbles(const std::uint8_t* n, std::size_t head_dim, std::byte* bytes) {
  constexpr std::size_t kRun = 32;
  for (std::size_t run = 0; run < head_dim; run += kRun) {
    const std::size_t count = std::min(kRun, head_dim - run);
    const std::size_t low = (count + 1) / 2;
    for (std::size_t i = 0; i < low; ++i) {
      const unsigned high = low + i < count ? n[run + low + i] : 0u;
      bytes[run / 2 + i] = static_cast<std::byte>(n[run + i] | high << 4);
    }
  }
}

void StoreValue(std::byte* tile, KvType type, std::size_t lane, const float* x,
                std::size_t head_dim) {
  RoundedRow row;
  RoundRow(type, x, head_dim, row);
  switch (type) {
    case KvType::kF32:
      std::copy_n(x, head_dim, reinterpret_cast<float*>(tile) + lane * head_dim);
      return;
    case KvType::kF16:
    case KvType::kBf16:
      for (std::size_t d = 0; d < head_dim; ++d) {
        reinterpret_cast<std::uint16_t*>(tile)[lane * head_dim + d] =
            type == KvType::kF16 ? RoundF16(x[d]) : RoundBf16(x[d]);
      }
      return;
    case KvType::kInt8:
      std::copy_n(row.bytes.data(), head_dim,
                  reinterpret_cast<std::int8_t*>(tile) + lane * head_dim);
      break;
    default:
      StoreNibbles(row.nibbles.data(), head_dim, tile + lane * ((head_dim + 1) / 2));
      break;
  }
  StoreScale(tile, type, lane, head_dim, row.scale);
}

}  // namespace

void StoreKv(const KvView& view, std::size_t position, const float* k_row, const float* v_row) {
  KV_CHECK(view.v_type != KvType::kInt4Channel);
  const std::size_t lane = position % kLanes;
  for (std::size_t head = 0; head < view.kv_heads; ++head) {
    const float* k = k_row + head * view.head_dim;
    const float* v = v_row + head * view.head_dim;
    if (view.k_type == KvType::kInt4Channel) {
      StoreKey(TailTile(view, position, head), KvType::kF32, lane, k, view.head_dim);
    } else {
      StoreKey(KTile(view, position, head), view.k_type, lane, k, view.head_dim);
    }
    StoreValue(VTile(view, position, head), view.v_type, lane, v, view.head_dim);
  }
}

void CheckKeyGroup(const KvView& view) {
  KV_CHECK(view.group >= kLanes && view.group <= kMaxKeyGroup && view.group % kLanes == 0 &&
           (view.block_tokens % view.group == 0 || view.group % view.block_tokens == 0));
}

void CompleteKeyGroup(const KvView& view, std::size_t group_index, std::size_t kv_head) {
  CheckKeyGroup(view);
  const std::size_t head_dim = view.head_dim;
  const std::size_t begin = group_index * view.group;
  const std::size_t end = begin + view.group;
  const auto is_kept = [&](std::size_t position) {
    return view.blocks[position / view.block_tokens] != nullptr;
  };
  for (std::size_t pair = 0; pair < (head_dim + 1) / 2; ++pair) {
    std::array<std::uint8_t, kMaxKeyGroup> numbers[2] = {};  // of both channels, [group]
    for (std::size_t d = 2 * pair; d < std::min(head_dim, 2 * pair + 2); ++d) {
      std::array<float, kMaxKeyGroup> column;
      for (std::size_t p = begin; p < end; p += kLanes) {
        const auto* tile = reinterpret_cast<const float*>(TailTile(view, p, kv_head));
        std::copy_n(tile + d * kLanes, kLanes, column.data() + (p - begin));
      }
      const RowScale scale = RoundInt4(column.data(), view.group, numbers[d % 2].data());
      // Each block that holds positions of the group has a copy.
      for (std::size_t p = begin; p < end; p += std::min(view.group, view.block_tokens)) {
        if (!is_kept(p)) continue;
        std::uint16_t* scales = ChannelScales(view, p, kv_head);
        scales[d] = scale.scale;
        scales[head_dim + d] = scale.minimum;
      }
    }
    for (std::size_t p = begin; p < end; p += kLanes) {
      if (!is_kept(p)) continue;
      std::byte* bytes = KTile(view, p, kv_head) + pair * kLanes;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::size_t i = p - begin + lane;
        bytes[lane] = static_cast<std::byte>(numbers[0][i] | numbers[1][i] << 4);
      }
    }
  }
}

void LoadKey(const KvView& view, std::size_t position, std::size_t kv_head, std::size_t reader,
             float* k) {
  const std::size_t head_dim = view.head_dim;
  const std::size_t lane = position % kLanes;
  if (view.k_type == KvType::kInt4Channel) {
    if (position / view.group == reader / view.group) {
      const std::byte* tile = TailTile(view, position, kv_head);
      for (std::size_t d = 0; d < head_dim; ++d) k[d] = KeyNumber(tile, KvType::kF32, d, lane);
      return;
    }
    const std::byte* tile = KTile(view, position, kv_head);
    const std::uint16_t* scales = ChannelScales(view, position, kv_head);
    for (std::size_t d = 0; d < head_dim; ++d) {
      k[d] = ReadAs(view.k_type, ChannelScale(scales, d, head_dim),
                    KeyNumber(tile, view.k_type, d, lane));
    }
    return;
  }
  const std::byte* tile = KTile(view, position, kv_head);
  const NumberScale scale = PositionScale(tile, view.k_type, lane, head_dim);
  for (std::size_t d = 0; d < head_dim; ++d) {
    k[d] = ReadAs(view.k_type, scale, KeyNumber(tile, view.k_type, d, lane));
  }
}

void LoadKv(const KvView& view, std::size_t position, std::size_t kv_head, float* k, float* v,
            std::size_t reader) {
  LoadKey(view, position, kv_head, reader, k);
  const std::size_t row = position % kLanes;
  const std::byte* tile = VTile(view, position, kv_head);
  const NumberScale scale = PositionScale(tile, view.v_type, row, view.head_dim);
  for (std::size_t d = 0; d < view.head_dim; ++d) {
    v[d] = ReadAs(view.v_type, scale, ValueNumber(tile, view.v_type, row, d, view.head_dim));
  }
}

}  // namespace kvasir::kernels
