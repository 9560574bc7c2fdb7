#include "store/block_value.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace kvasir::store {
namespace {

using base::Hash128;
using kvcache::BlockIdentity;

constexpr char kMagic[8] = {'k', 'v', 'b', 'l', 'o', 'c', 'k', '\n'};
constexpr int kZstdLevel = 1;
constexpr std::uint64_t kChecksumSeed = 0x6b76736d;
// A payload that compression does not make this much smaller is not worth unpacking.
constexpr std::size_t kLeastSaving = 8;  // One part of so many.

// Without gaps, so that its bytes are its fields.
struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t encoding;
  Hash128 fingerprint;
  Hash128 layout;
  Hash128 name;
  Hash128 witness;
  std::uint32_t group;
  std::uint32_t token_count;
  std::uint64_t block_bytes;
  std::uint64_t payload_bytes;
};
static_assert(sizeof(Header) == 104);

std::size_t HeadBytes(std::size_t tokens) {
  return sizeof(Header) + tokens * sizeof(base::TokenId);
}

Header HeaderOf(const BlockIdentity& identity, Encoding encoding, std::uint64_t payload_bytes) {
  Header header = {.magic = {},
                   .version = kBlockValueVersion,
                   .encoding = static_cast<std::uint32_t>(encoding),
                   .fingerprint = identity.fingerprint,
                   .layout = identity.layout,
                   .name = identity.name,
                   .witness = identity.witness,
                   .group = identity.group,
                   .token_count = static_cast<std::uint32_t>(identity.tokens.size()),
                   .block_bytes = identity.bytes,
                   .payload_bytes = payload_bytes};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  return header;
}

Hash128 Checksum(std::span<const std::byte> before) {
  return base::HashBytes128(before, kChecksumSeed);
}

// Byte k of word i at k · words + i; what is left of a word stays behind them.
void SplitPlanes(std::span<const std::byte> block, std::span<std::byte> planes) {
  const std::size_t words = block.size() / 4;
  for (std::size_t i = 0; i < words; ++i) {
    for (std::size_t k = 0; k < 4; ++k) planes[k * words + i] = block[4 * i + k];
  }
  std::copy(block.begin() + static_cast<std::ptrdiff_t>(4 * words), block.end(),
            planes.begin() + static_cast<std::ptrdiff_t>(4 * words));
}

void JoinPlanes(std::span<const std::byte> planes, std::span<std::byte> block) {
  const std::size_t words = block.size() / 4;
  for (std::size_t i = 0; i < words; ++i) {
    for (std::size_t k = 0; k < 4; ++k) block[4 * i + k] = planes[k * words + i];
  }
  std::copy(planes.begin() + static_cast<std::ptrdiff_t>(4 * words), planes.end(),
            block.begin() + static_cast<std::ptrdiff_t>(4 * words));
}

// Empty if it does not become small enough.
std::vector<std::byte> Compress(std::span<const std::byte> bytes, std::size_t most) {
  std::vector<std::byte> packed(most);
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), kZstdLevel);
  packed.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return packed;
}

bool Decompress(std::span<const std::byte> packed, std::span<std::byte> bytes) {
  return ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size()) == bytes.size();
}

}  // namespace

std::vector<std::byte> BeginBlockValue(const BlockIdentity& identity,
                                       std::span<const std::byte> block,
                                       std::vector<std::byte> room) {
  KV_CHECK(block.size() == identity.bytes);
  const Header header = HeaderOf(identity, Encoding::kRaw, block.size());
  const std::size_t head = HeadBytes(identity.tokens.size());
  std::vector<std::byte> value = std::move(room);
  value.clear();
  value.reserve(head + block.size() + sizeof(Hash128));
  const auto append = [&value](std::span<const std::byte> bytes) {
    value.insert(value.end(), bytes.begin(), bytes.end());
  };
  append(std::as_bytes(std::span(&header, 1)));
  append(std::as_bytes(std::span(identity.tokens)));
  append(block);
  return value;
}

void FinishBlockValue(Compression compression, std::vector<std::byte>& value) {
  Header header;
  std::memcpy(&header, value.data(), sizeof(header));
  const std::size_t head = HeadBytes(header.token_count);
  KV_CHECK(value.size() == head + header.block_bytes);
  if (compression == Compression::kOn) {
    const std::span<const std::byte> block = std::span(value).subspan(head);
    const std::size_t most = block.size() - block.size() / kLeastSaving;
    std::vector<std::byte> planes(block.size());
    SplitPlanes(block, planes);
    std::vector<std::byte> packed = Compress(planes, most);
    Encoding encoding = Encoding::kZstdPlanes;
    const std::vector<std::byte> plain = Compress(block, packed.empty() ? most : packed.size());
    if (!plain.empty()) {
      packed = plain;
      encoding = Encoding::kZstd;
    }
    if (!packed.empty()) {
      header.encoding = static_cast<std::uint32_t>(encoding);
      header.payload_bytes = packed.size();
      std::memcpy(value.data(), &header, sizeof(header));
      value.resize(head);
      value.insert(value.end(), packed.begin(), packed.end());
    }
  }
  const Hash128 checksum = Checksum(value);
  const auto bytes = std::as_bytes(std::span(&checksum, 1));
  value.insert(value.end(), bytes.begin(), bytes.end());
}

std::optional<base::AlignedArray<std::byte>> ReadBlockValue(const BlockIdentity& identity,
                                                            std::span<const std::byte> value) {
  const std::size_t head = HeadBytes(identity.tokens.size());
  if (value.size() < head + sizeof(Hash128)) return std::nullopt;
  Header header;
  std::memcpy(&header, value.data(), sizeof(header));
  // Everything but these two must be as in the value that we would write.
  const auto encoding = static_cast<Encoding>(header.encoding);
  const Header expected = HeaderOf(identity, encoding, header.payload_bytes);
  const std::span<const std::byte> payload =
      value.subspan(head, value.size() - head - sizeof(Hash128));
  if (std::memcmp(&header, &expected, sizeof(header)) != 0 ||
      header.payload_bytes != payload.size() ||
      std::memcmp(value.data() + sizeof(header), identity.tokens.data(), head - sizeof(header)) !=
          0) {
    return std::nullopt;
  }
  const Hash128 checksum = Checksum(value.first(head + payload.size()));
  if (std::memcmp(payload.data() + payload.size(), &checksum, sizeof(checksum)) != 0) {
    return std::nullopt;
  }
  base::AlignedArray<std::byte> block(identity.bytes);
  switch (encoding) {
    case Encoding::kRaw:
      if (payload.size() != block.size()) return std::nullopt;
      std::memcpy(block.data(), payload.data(), payload.size());
      return block;
    case Encoding::kZstd:
      if (!Decompress(payload, block.span())) return std::nullopt;
      return block;
    case Encoding::kZstdPlanes: {
      std::vector<std::byte> planes(block.size());
      if (!Decompress(payload, planes)) return std::nullopt;
      JoinPlanes(planes, block.span());
      return block;
    }
  }
  return std::nullopt;
}

}  // namespace kvasir::store
