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
      capacity_blocks_(std::min<std::uint64_t>(options.budget_bytes / geometry.block_bytes(),
                                               std::numeric_limits<std::uint32_t>::max())),
      placement_seed_(options.placement_seed),
      memory_(options.memory != nullptr ? *options.memory : BlockMemory::System()) {}

BlockPool::~BlockPool() {
  KV_CHECK(references_ == 0 && keeper_ == nullptr);  // Otherwise one of them outlives its pool.
  for (const Block& block : blocks_) {
    ASAN_UNPOISON_MEMORY_REGION(block.data, geometry_.block_bytes());
    memory_.Free(block.data, geometry_.block_bytes());
  }
}

Result<void> BlockPool::CheckAvailable(std::uint64_t wanted_blocks) const {
  const std::uint64_t live_blocks = LiveBlocks();
  if (wanted_blocks <= capacity_blocks_ - live_blocks) return base::Success();
  return MakeError(ErrorCode::kExhausted,
                   "the cache budget of {} blocks of {} bytes has {} left, but {} more are needed",
                   capacity_blocks_, geometry_.block_bytes(), capacity_blocks_ - live_blocks,
                   wanted_blocks);
}

Result<BlockId> BlockPool::Allocate() {
  KV_TRY(CheckAvailable(1));
  const std::size_t choices = placement_seed_ ? kPlacementChoices : 1;
  while (free_.size() < choices && blocks_.size() < capacity_blocks_) {
    if (!Grow()) break;
  }
  if (free_.empty() && idle_blocks_ > 0) keeper_->GiveUpIdle();
  if (free_.empty()) {
    return MakeError(ErrorCode::kExhausted,
                     "the machine has no memory for one more cache block of {} bytes ({} are held)",
                     geometry_.block_bytes(), blocks_.size());
  }
  const BlockId id = TakeFree();
  Block& block = blocks_[id.index()];
  ASAN_UNPOISON_MEMORY_REGION(block.data, geometry_.block_bytes());
  if (placement_seed_) std::memset(block.data, kNanByte, geometry_.block_bytes());
  block.references = 1;
  ++references_;
  peak_live_blocks_ = std::max(peak_live_blocks_, LiveBlocks());
  return id;
}

// Adds one free block; false if memory has none.
bool BlockPool::Grow() {
  std::byte* data = memory_.Allocate(geometry_.block_bytes());
  if (data == nullptr) return false;
  ASAN_POISON_MEMORY_REGION(data, geometry_.block_bytes());
  free_.push_back(BlockId(static_cast<std::uint32_t>(blocks_.size())));
  blocks_.push_back({.data = data, .references = 0, .kept = false});
  return true;
}

BlockId BlockPool::TakeFree() {
  if (placement_seed_) {
    const auto draw = static_cast<std::uint32_t>(draws_++);
    const std::size_t pick = base::Philox4x32(*placement_seed_, {draw, 0, 0, 0})[0] % free_.size();
    std::swap(free_[pick], free_.back());
  }
  const BlockId id = free_.back();
  free_.pop_back();
  return id;
}

void BlockPool::AddRef(BlockId id) {
  KV_CHECK(id.index() < blocks_.size());
  Block& block = blocks_[id.index()];
  KV_CHECK(block.references > 0 || block.kept);
  KV_CHECK(block.references < std::numeric_limits<std::uint32_t>::max());
  ++references_;
  if (++block.references == 2) ++shared_blocks_;
  if (block.references > 1) return;
  --idle_blocks_;
  peak_live_blocks_ = std::max(peak_live_blocks_, LiveBlocks());
  ASAN_UNPOISON_MEMORY_REGION(block.data, geometry_.block_bytes());
  keeper_->OnLive(id);
}

void BlockPool::Release(BlockId id) {
  Block& block = LiveBlock(id);
  --references_;
  if (--block.references == 1) --shared_blocks_;
  if (block.references > 0) return;
  ASAN_POISON_MEMORY_REGION(block.data, geometry_.block_bytes());
  if (!block.kept) {
    free_.push_back(id);
    return;
  }
  ++idle_blocks_;
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
  --idle_blocks_;
  free_.push_back(id);
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

BlockPoolStats BlockPool::stats() const {
  return {.block_bytes = geometry_.block_bytes(),
          .capacity_blocks = capacity_blocks_,
          .live_blocks = LiveBlocks(),
          .shared_blocks = shared_blocks_,
          .references = references_,
          .idle_blocks = idle_blocks_,
          .free_blocks = free_.size(),
          .peak_live_blocks = peak_live_blocks_};
}

void BlockPool::CheckInvariants() const {
  std::uint64_t live_blocks = 0;
  std::uint64_t shared_blocks = 0;
  std::uint64_t idle_blocks = 0;
  std::uint64_t references = 0;
  for (const Block& block : blocks_) {
    KV_CHECK(block.data != nullptr && reinterpret_cast<std::uintptr_t>(block.data) % 64 == 0);
    references += block.references;
    if (block.references >= 1) ++live_blocks;
    if (block.references >= 2) ++shared_blocks;
    if (block.references == 0 && block.kept) ++idle_blocks;
    KV_CHECK(!block.kept || keeper_ != nullptr);
  }
  KV_CHECK(blocks_.size() <= capacity_blocks_);
  KV_CHECK(shared_blocks == shared_blocks_);
  KV_CHECK(references == references_);
  KV_CHECK(live_blocks <= peak_live_blocks_ && peak_live_blocks_ <= blocks_.size());

  KV_CHECK(idle_blocks == idle_blocks_);
  KV_CHECK(live_blocks + idle_blocks + free_.size() == blocks_.size());
  std::vector<bool> is_free(blocks_.size(), false);
  for (const BlockId id : free_) {
    KV_CHECK(id.index() < blocks_.size() && blocks_[id.index()].references == 0);
    KV_CHECK(!blocks_[id.index()].kept);
    KV_CHECK(!is_free[id.index()]);
    is_free[id.index()] = true;
  }
}

}  // namespace kvasir::kvcache
