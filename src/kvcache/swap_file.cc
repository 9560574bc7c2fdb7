#include "kvcache/swap_file.h"

#include <cstring>
#include <utility>
#include <vector>

#include "base/aligned.h"
#include "base/check.h"
#include "kvcache/block_copy.h"

namespace kvasir::kvcache {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::uint64_t kMagic = 0x3170617773766b00;  // "\0kvswap1"
constexpr std::size_t kHashBytes = sizeof(base::Hash128);

base::Hash128 NextHash(std::span<const std::byte> part, const base::Hash128& before) {
  return base::HashBytes128(part, before.low ^ before.high);
}

// Header and tokens, followed by nothing.
std::vector<std::byte> Head(const SwapKey& key, const CacheGeometry& geometry) {
  const std::uint64_t words[] = {kMagic,
                                 key.fingerprint.low,
                                 key.fingerprint.high,
                                 geometry.block_bytes(),
                                 geometry.block_tokens(),
                                 key.tokens.size()};
  std::vector<std::byte> head(sizeof(words) + key.tokens.size_bytes());
  std::memcpy(head.data(), words, sizeof(words));
  if (!key.tokens.empty()) {
    std::memcpy(head.data() + sizeof(words), key.tokens.data(), key.tokens.size_bytes());
  }
  return head;
}

std::uint64_t FileSize(std::size_t head_bytes, const CacheGeometry& geometry, std::size_t length) {
  std::uint64_t bytes = head_bytes + kHashBytes;
  (void)VisitSwapped(geometry, length, [&](CacheGroupId group, std::size_t) {
    bytes += geometry.group(group).block_bytes + kHashBytes;
    return Result<void>(base::Success());
  });
  return bytes;
}

Result<void> AppendPart(base::WritableFile& file, std::span<const std::byte> part,
                        base::Hash128& hash) {
  hash = NextHash(part, hash);
  KV_TRY(file.Append(part));
  return file.Append(std::as_bytes(std::span(&hash, 1)));
}

}  // namespace

Result<std::uint64_t> WriteSwapFile(base::Env& env, const std::string& path, const SwapKey& key,
                                    const CachedSequence& sequence) {
  const CacheGeometry& geometry = sequence.geometry();
  const std::size_t length = sequence.length();
  KV_CHECK(key.tokens.size() == length);
  const std::vector<std::byte> head = Head(key, geometry);
  base::Hash128 hash;
  KV_TRY(const auto file, env.Create(path));
  KV_TRY(AppendPart(*file, head, hash));
  const std::size_t complete = length / geometry.block_tokens();
  const auto filled = static_cast<std::uint32_t>(length % geometry.block_tokens());
  KV_TRY(VisitSwapped(geometry, length, [&](CacheGroupId group, std::size_t i) {
    const std::uint64_t bytes = geometry.group(group).block_bytes;
    const std::byte* block = sequence.table(group).addresses()[i];
    if (i < complete) return AppendPart(*file, {block, bytes}, hash);
    base::AlignedArray<std::byte> last(bytes);
    CopySlots(geometry, group, filled, block, last.data());
    return AppendPart(*file, last.span(), hash);
  }));
  KV_TRY(file->Close());
  return FileSize(head.size(), geometry, length);
}

Result<SwapReader> SwapReader::Open(base::Env& env, const std::string& path, const SwapKey& key,
                                    const CacheGeometry& geometry) {
  KV_TRY(auto file, env.Map(path));
  const std::vector<std::byte> head = Head(key, geometry);
  const std::span<const std::byte> bytes = file->bytes();
  const std::uint64_t size = FileSize(head.size(), geometry, key.tokens.size());
  if (bytes.size() != size) {
    return MakeError(ErrorCode::kBadData, "swap file '{}' has {} bytes, but must have {}", path,
                     bytes.size(), size);
  }
  const base::Hash128 hash = NextHash(head, {});
  if (std::memcmp(bytes.data(), head.data(), head.size()) != 0 ||
      std::memcmp(bytes.data() + head.size(), &hash, kHashBytes) != 0) {
    return MakeError(ErrorCode::kBadData, "swap file '{}' is not of this sequence", path);
  }
  return SwapReader(std::move(file), head.size() + kHashBytes, hash);
}

Result<void> SwapReader::ReadBlock(std::uint64_t block_bytes, std::byte* to) {
  const std::span<const std::byte> bytes = file_->bytes();
  KV_CHECK(bytes.size() - offset_ >= block_bytes + kHashBytes);
  const std::span<const std::byte> block = bytes.subspan(offset_, block_bytes);
  hash_ = NextHash(block, hash_);
  if (std::memcmp(bytes.data() + offset_ + block_bytes, &hash_, kHashBytes) != 0) {
    return MakeError(ErrorCode::kBadData, "a swapped block at byte {} does not match its checksum",
                     offset_);
  }
  if (to != nullptr) std::memcpy(to, block.data(), block_bytes);
  offset_ += block_bytes + kHashBytes;
  return base::Success();
}

}  // namespace kvasir::kvcache
