#include "kvcache/block_table.h"

#include <utility>

#include "base/check.h"
#include "kvcache/block_copy.h"

namespace kvasir::kvcache {

using base::Result;

BlockTable::BlockTable(BlockTable&& other) noexcept
    : pool_(other.pool_),
      group_(other.group_),
      blocks_(std::exchange(other.blocks_, {})),
      addresses_(std::exchange(other.addresses_, {})),
      held_(std::exchange(other.held_, 0)) {}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  if (this == &other) return *this;
  Shrink(0);
  pool_ = other.pool_;
  group_ = other.group_;
  blocks_ = std::exchange(other.blocks_, {});
  addresses_ = std::exchange(other.addresses_, {});
  held_ = std::exchange(other.held_, 0);
  return *this;
}

std::uint64_t BlockTable::shared_blocks() const {
  std::uint64_t shared = 0;
  for (std::size_t i = 0; i < entries(); ++i) {
    if (holds(i) && pool_->references(blocks_[i]) > 1) ++shared;
  }
  return shared;
}

Result<void> BlockTable::Append(std::uint64_t count) {
  const std::size_t before = entries();
  for (std::uint64_t i = 0; i < count; ++i) {
    Result<BlockId> block = pool_->Allocate(group_);
    if (!block) {
      Shrink(before);
      return std::move(block).as_failure();
    }
    blocks_.push_back(block.value());
    addresses_.push_back(pool_->data(block.value()));
    ++held_;
  }
  return base::Success();
}

Result<void> BlockTable::CopyBlock(std::size_t entry, std::uint32_t slots) {
  KV_CHECK(holds(entry));
  KV_TRY(const BlockId copy, pool_->Allocate(group_));
  CopySlots(pool_->geometry(), group_, slots, addresses_[entry], pool_->data(copy));
  pool_->Release(blocks_[entry]);
  blocks_[entry] = copy;
  addresses_[entry] = pool_->data(copy);
  return base::Success();
}

void BlockTable::Share(std::optional<BlockId> block) {
  if (block) {
    pool_->AddRef(*block);
    KV_CHECK(pool_->group(*block) == group_);
    ++held_;
  }
  blocks_.push_back(block.value_or(BlockId(0)));
  addresses_.push_back(block ? pool_->data(*block) : nullptr);
}

void BlockTable::Replace(std::size_t entry, BlockId block) {
  KV_CHECK(holds(entry));
  pool_->AddRef(block);
  pool_->Release(blocks_[entry]);
  blocks_[entry] = block;
  addresses_[entry] = pool_->data(block);
}

void BlockTable::Drop(std::size_t entry) {
  KV_CHECK(holds(entry));
  pool_->Release(blocks_[entry]);
  addresses_[entry] = nullptr;
  --held_;
}

// The last first, so that blocks are reused in table order.
void BlockTable::Shrink(std::size_t entries) {
  while (addresses_.size() > entries) {
    if (addresses_.back() != nullptr) {
      pool_->Release(blocks_.back());
      --held_;
    }
    blocks_.pop_back();
    addresses_.pop_back();
  }
}

BlockTable BlockTable::Fork(std::size_t entries) const {
  BlockTable fork(*pool_, group_);
  for (std::size_t i = 0; i < entries; ++i) {
    fork.Share(holds(i) ? std::optional(blocks_[i]) : std::nullopt);
  }
  return fork;
}

void BlockTable::CheckInvariants() const {
  KV_CHECK(addresses_.size() == blocks_.size());
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < entries(); ++i) {
    if (!holds(i)) continue;
    ++held;
    KV_CHECK(addresses_[i] == pool_->data(blocks_[i]));
    KV_CHECK(pool_->group(blocks_[i]) == group_);
  }
  KV_CHECK(held == held_);
}

}  // namespace kvasir::kvcache
