#include "kvcache/block_pool.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/philox.h"

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#endif

namespace kvasir::kvcache {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

// With a placement seed, the next block is drawn among this many where the budget has them.
constexpr std::size_t kPlacementChoices = 16;
constexpr int kNanByte = 0xFF;  // Four of them are a quiet NaN.

}  // namespace

Result<std::unique_ptr<BlockPool>> BlockPool::Make(const CacheGeometry& geometry,
                                                   const BlockPoolOptions& options) {
  if (options.budget_bytes < geometry.block_bytes()) {
    return MakeError(ErrorCode::kUsage,
                     "the cache budget is {} bytes, but must hold at least one block of {} bytes "
                     "({} tokens of {} bytes)",
                     options.budget_bytes, geometry.block_bytes(), geometry.block_tokens(),
                     geometry.bytes_per_token());
  }
  return std::unique_ptr<BlockPool>(new BlockPool(geometry, options));
}

BlockPool::BlockPool(const CacheGeometry& geometry, const BlockPoolOptions& options)
    : geometry_(geometry),
      placement_seed_(options.placement_seed),
      memory_(options.memory != nullptr ? *options.memory : BlockMemory::System()),
      free_(geometry.groups().size()) {
  stats_.budget_bytes = options.budget_bytes;
  if (geometry.block_bytes() > 0) {
    stats_.capacity_blocks = options.budget_bytes / geometry.block_bytes();
  }
}

BlockPool::~BlockPool() {
  // Otherwise one of them outlives its pool.
  KV_CHECK(stats_.references == 0 && keeper_ == nullptr);
  for (const Block& block : blocks_) {
    if (block.data == nullptr) continue;
    ASAN_UNPOISON_MEMORY_REGION(block.data, BytesOf(block));
    memory_.Free(block.data, BytesOf(block));
  }
}

Result<void> BlockPool::CheckAvailable(std::uint64_t wanted_bytes) const {
  if (wanted_bytes <= stats_.available_bytes()) return base::Success();
  return MakeError(ErrorCode::kExhausted,
                   "the cache budget of {} bytes has {} left, but {} more are needed",
                   stats_.budget_bytes, stats_.available_bytes(), wanted_bytes);
}

Result<BlockId> BlockPool::Allocate(CacheGroupId group) {
  const std::uint64_t bytes = geometry_.group(group).block_bytes;
  KV_TRY(CheckAvailable(bytes));
  std::vector<BlockId>& free = free_[group.index()];
  const std::size_t choices = placement_seed_ ? kPlacementChoices : 1;
  while (free.size() < choices && Grow(group)) {
  }
  while (free.empty()) {
    if (TrimOther(group)) {
      Grow(group);
    } else if (stats_.idle_blocks > 0) {
      keeper_->GiveUpIdle();
    } else {
      return MakeError(ErrorCode::kExhausted,
                       "the machine has no memory for one more cache block of {} bytes ({} bytes "
                       "are held)",
                       bytes, stats_.storage_bytes());
    }
  }
  const BlockId id = TakeFree(group);
  Block& block = blocks_[id.index()];
  ASAN_UNPOISON_MEMORY_REGION(block.data, bytes);
  if (placement_seed_) std::memset(block.data, kNanByte, bytes);
  block.references = 1;
  ++stats_.references;
  stats_.referenced_bytes += bytes;
  CountLive(block);
  return id;
}

bool BlockPool::Grow(CacheGroupId group) {
  const std::uint64_t bytes = geometry_.group(group).block_bytes;
  if (bytes > stats_.budget_bytes - stats_.storage_bytes()) return false;
  if (vacant_.empty() && blocks_.size() == std::numeric_limits<std::uint32_t>::max()) return false;
  std::byte* data = memory_.Allocate(bytes);
  if (data == nullptr) return false;
  ASAN_POISON_MEMORY_REGION(data, bytes);
  const Block block = {.data = data, .group = group, .references = 0, .kept = false};
  if (vacant_.empty()) {
    vacant_.emplace_back(static_cast<std::uint32_t>(blocks_.size()));
    blocks_.push_back(block);
  }
  const BlockId id = vacant_.back();
  vacant_.pop_back();
  blocks_[id.index()] = block;
  free_[group.index()].push_back(id);
  ++stats_.free_blocks;
  stats_.free_bytes += bytes;
  return true;
}

bool BlockPool::TrimOther(CacheGroupId group) {
  for (std::size_t i = 0; i < free_.size(); ++i) {
    if (i == group.index() || free_[i].empty()) continue;
    const BlockId id = free_[i].back();
    free_[i].pop_back();
    Block& block = blocks_[id.index()];
    const std::uint64_t bytes = BytesOf(block);
    ASAN_UNPOISON_MEMORY_REGION(block.data, bytes);
    memory_.Free(std::exchange(block.data, nullptr), bytes);
    vacant_.push_back(id);
    --stats_.free_blocks;
    stats_.free_bytes -= bytes;
    return true;
  }
  return false;
}

BlockId BlockPool::TakeFree(CacheGroupId group) {
  std::vector<BlockId>& free = free_[group.index()];
  if (placement_seed_) {
    const auto draw = static_cast<std::uint32_t>(draws_++);
    const std::size_t pick = base::Philox4x32(*placement_seed_, {draw, 0, 0, 0})[0] % free.size();
    std::swap(free[pick], free.back());
  }
  const BlockId id = free.back();
  free.pop_back();
  --stats_.free_blocks;
  stats_.free_bytes -= BytesOf(blocks_[id.index()]);
  return id;
}

// Of a block that has its first reference.
void BlockPool::CountLive(const Block& block) {
  ++stats_.live_blocks;
  stats_.live_bytes += BytesOf(block);
  stats_.peak_live_bytes = std::max(stats_.peak_live_bytes, stats_.live_bytes);
}

void BlockPool::AddRef(BlockId id) {
  KV_CHECK(id.index() < blocks_.size());
  Block& block = blocks_[id.index()];
  KV_CHECK(block.references > 0 || block.kept);
  KV_CHECK(block.references < std::numeric_limits<std::uint32_t>::max());
  const std::uint64_t bytes = BytesOf(block);
  ++stats_.references;
  stats_.referenced_bytes += bytes;
  if (++block.references == 2) {
    ++stats_.shared_blocks;
    stats_.shared_bytes += bytes;
  }
  if (block.references > 1) return;
  --stats_.idle_blocks;
  stats_.idle_bytes -= bytes;
  CountLive(block);
  ASAN_UNPOISON_MEMORY_REGION(block.data, bytes);
  keeper_->OnLive(id);
}

void BlockPool::Release(BlockId id) {
  Block& block = LiveBlock(id);
  const std::uint64_t bytes = BytesOf(block);
  --stats_.references;
  stats_.referenced_bytes -= bytes;
  if (--block.references == 1) {
    --stats_.shared_blocks;
    stats_.shared_bytes -= bytes;
  }
  if (block.references > 0) return;
  --stats_.live_blocks;
  stats_.live_bytes -= bytes;
  ASAN_POISON_MEMORY_REGION(block.data, bytes);
  if (!block.kept) {
    free_[block.group.index()].push_back(id);
    ++stats_.free_blocks;
    stats_.free_bytes += bytes;
    return;
  }
  ++stats_.idle_blocks;
  stats_.idle_bytes += bytes;
  keeper_->OnIdle(id);
}

void BlockPool::SetKeeper(BlockKeeper* keeper) {
  KV_CHECK(keeper == nullptr || keeper_ == nullptr);
  keeper_ = keeper;
}

void BlockPool::Keep(BlockId id) {
  Block& block = LiveBlock(id);
  KV_CHECK(keeper_ != nullptr && !block.kept);
  block.kept = true;
}

void BlockPool::StopKeeping(BlockId id) {
  KV_CHECK(id.index() < blocks_.size() && blocks_[id.index()].kept);
  Block& block = blocks_[id.index()];
  block.kept = false;
  if (block.references > 0) return;
  const std::uint64_t bytes = BytesOf(block);
  --stats_.idle_blocks;
  stats_.idle_bytes -= bytes;
  free_[block.group.index()].push_back(id);
  ++stats_.free_blocks;
  stats_.free_bytes += bytes;
}

void BlockPool::MakeWritable(BlockId id) {
  KV_CHECK(references(id) == 1 && kept(id));
  keeper_->GiveUp(id);
  KV_CHECK(IsWritable(id));
}

bool BlockPool::kept(BlockId id) const { return LiveBlock(id).kept; }

std::byte* BlockPool::data(BlockId id) const { return LiveBlock(id).data; }

std::uint32_t BlockPool::references(BlockId id) const { return LiveBlock(id).references; }

const BlockPool::Block& BlockPool::LiveBlock(BlockId id) const {
  KV_CHECK(id.index() < blocks_.size() && blocks_[id.index()].references > 0);
  return blocks_[id.index()];
}

BlockPool::Block& BlockPool::LiveBlock(BlockId id) {
  return const_cast<Block&>(std::as_const(*this).LiveBlock(id));
}

BlockPoolStats BlockPool::stats() const { return stats_; }

void BlockPool::CheckInvariants() const {
  BlockPoolStats sum = {.budget_bytes = stats_.budget_bytes,
                        .capacity_blocks = stats_.capacity_blocks};
  std::size_t vacant = 0;
  for (const Block& block : blocks_) {
    if (block.data == nullptr) {
      KV_CHECK(block.references == 0 && !block.kept);
      ++vacant;
      continue;
    }
    KV_CHECK(reinterpret_cast<std::uintptr_t>(block.data) % 64 == 0);
    KV_CHECK(!block.kept || keeper_ != nullptr);
    const std::uint64_t bytes = BytesOf(block);
    sum.references += block.references;
    sum.referenced_bytes += block.references * bytes;
    const bool live = block.references > 0;
    ++(live ? sum.live_blocks : block.kept ? sum.idle_blocks : sum.free_blocks);
    (live ? sum.live_bytes : block.kept ? sum.idle_bytes : sum.free_bytes) += bytes;
    if (block.references < 2) continue;
    ++sum.shared_blocks;
    sum.shared_bytes += bytes;
  }
  sum.peak_live_bytes = stats_.peak_live_bytes;
  KV_CHECK(sum == stats_);
  KV_CHECK(sum.storage_bytes() <= sum.budget_bytes);
  KV_CHECK(sum.live_bytes <= sum.peak_live_bytes && sum.peak_live_bytes <= sum.budget_bytes);
  KV_CHECK(vacant == vacant_.size());
  std::vector<bool> is_free(blocks_.size(), false);
  std::size_t free = 0;
  for (std::size_t group = 0; group < free_.size(); ++group) {
    free += free_[group].size();
    for (const BlockId id : free_[group]) {
      KV_CHECK(id.index() < blocks_.size() && blocks_[id.index()].data != nullptr);
      const Block& block = blocks_[id.index()];
      KV_CHECK(block.references == 0 && !block.kept && block.group.index() == group);
      KV_CHECK(!is_free[id.index()]);
      is_free[id.index()] = true;
    }
  }
  KV_CHECK(free == sum.free_blocks);
}

}  // namespace kvasir::kvcache
