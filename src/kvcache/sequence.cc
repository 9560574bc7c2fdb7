#include "kvcache/sequence.h"

#include <utility>

#include "base/check.h"
#include "kvcache/block_copy.h"

namespace kvasir::kvcache {

using base::Result;

CachedSequence::CachedSequence(CachedSequence&& other) noexcept
    : pool_(other.pool_),
      length_(std::exchange(other.length_, 0)),
      blocks_(std::exchange(other.blocks_, {})),
      addresses_(std::exchange(other.addresses_, {})) {}

CachedSequence& CachedSequence::operator=(CachedSequence&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  pool_ = other.pool_;
  length_ = std::exchange(other.length_, 0);
  blocks_ = std::exchange(other.blocks_, {});
  addresses_ = std::exchange(other.addresses_, {});
  return *this;
}

Result<void> CachedSequence::Reserve(std::size_t count) {
  if (count == 0) return base::Success();
  const std::size_t unused = slots() - length_;
  const std::uint64_t missing = geometry().BlocksFor(count > unused ? count - unused : 0);
  if (!NextSlotIsReadOnly()) return AppendBlocks(missing);
  const BlockId last = blocks_[length_ / geometry().block_tokens()];
  if (pool_->references(last) == 1 && !pool_->CheckAvailable(missing + 1)) {
    KV_TRY(pool_->CheckAvailable(missing));
    pool_->MakeWritable(last);
    return AppendBlocks(missing);
  }
  return CopyAndAppend(missing);
}

Result<void> CachedSequence::CopyAndAppend(std::uint64_t missing) {
  KV_TRY(pool_->CheckAvailable(missing + 1));
  KV_TRY(const BlockId copy, pool_->Allocate());
  if (Result<void> appended = AppendBlocks(missing); !appended) {
    pool_->Release(copy);
    return appended;
  }
  const std::size_t last = length_ / geometry().block_tokens();
  const auto filled = static_cast<std::uint32_t>(length_ % geometry().block_tokens());
  CopySlots(geometry(), filled, addresses_[last], pool_->data(copy));
  pool_->Release(blocks_[last]);
  blocks_[last] = copy;
  addresses_[last] = pool_->data(copy);
  return base::Success();
}

// All or nothing. The budget is asked first, so that a count far beyond it touches no memory.
Result<void> CachedSequence::AppendBlocks(std::uint64_t count) {
  if (count == 0) return base::Success();
  KV_TRY(pool_->CheckAvailable(count));
  const std::size_t held = blocks_.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    Result<BlockId> block = pool_->Allocate();
    if (!block) {
      DropBlocks(held);
      return std::move(block).as_failure();
    }
    blocks_.push_back(block.value());
    addresses_.push_back(pool_->data(block.value()));
  }
  return base::Success();
}

bool CachedSequence::NextSlotIsReadOnly() const {
  const std::size_t next = length_ / geometry().block_tokens();
  return next < blocks_.size() && !pool_->IsWritable(blocks_[next]);
}

void CachedSequence::Advance(std::size_t count) {
  if (count == 0) return;
  KV_CHECK(count <= slots() - length_);
  KV_CHECK(!NextSlotIsReadOnly());
  length_ += count;
}

void CachedSequence::Truncate(std::size_t new_length) {
  KV_CHECK(new_length <= length_);
  DropBlocks(geometry().BlocksFor(new_length));
  length_ = new_length;
}

// Releases the blocks from entry `kept` on, last first, so that they are reused in table order.
void CachedSequence::DropBlocks(std::size_t kept) {
  while (blocks_.size() > kept) {
    pool_->Release(blocks_.back());
    blocks_.pop_back();
    addresses_.pop_back();
  }
}

CachedSequence CachedSequence::Fork() {
  CachedSequence fork(*pool_);
  const std::size_t filled = geometry().BlocksFor(length_);
  fork.blocks_.assign(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(filled));
  fork.addresses_.assign(addresses_.begin(),
                         addresses_.begin() + static_cast<std::ptrdiff_t>(filled));
  for (const BlockId id : fork.blocks_) pool_->AddRef(id);
  fork.length_ = length_;
  return fork;
}

void CachedSequence::Share(std::span<const BlockId> blocks, std::size_t length) {
  KV_CHECK(blocks_.empty() && length_ == 0);
  KV_CHECK(blocks.size() == geometry().BlocksFor(length));
  for (const BlockId id : blocks) {
    pool_->AddRef(id);
    blocks_.push_back(id);
    addresses_.push_back(pool_->data(id));
  }
  length_ = length;
}

void CachedSequence::ReplaceBlock(std::size_t entry, BlockId same_contents) {
  KV_CHECK((entry + 1) * geometry().block_tokens() <= length_);
  pool_->AddRef(same_contents);
  pool_->Release(blocks_[entry]);
  blocks_[entry] = same_contents;
  addresses_[entry] = pool_->data(same_contents);
}

kernels::KvView CachedSequence::View(std::size_t layer) const {
  const CacheGeometry& shape = geometry();
  return {.blocks = addresses_.data(),
          .k_offset = shape.k_offset(layer),
          .v_offset = shape.v_offset(layer),
          .block_tokens = shape.block_tokens(),
          .kv_heads = shape.kv_heads(),
          .head_dim = shape.head_dim()};
}

kernels::LatentView CachedSequence::Latents(std::size_t layer) const {
  const CacheGeometry& shape = geometry();
  return {.blocks = addresses_.data(),
          .offset = shape.latent_offset(layer),
          .block_tokens = shape.block_tokens(),
          .latent_dim = shape.latent_dim(),
          .rope_dim = shape.rope_dim()};
}

std::uint64_t CachedSequence::held_bytes(std::size_t layer) const {
  KV_CHECK(layer < geometry().layers());
  return blocks_.size() * geometry().layer_block_bytes();
}

std::uint64_t CachedSequence::shared_bytes() const {
  std::uint64_t shared_blocks = 0;
  for (const BlockId id : blocks_) shared_blocks += pool_->references(id) > 1 ? 1 : 0;
  return shared_blocks * geometry().block_bytes();
}

std::uint64_t CachedSequence::waste_bytes() const {
  return (slots() - length_) * geometry().bytes_per_token();
}

void CachedSequence::CheckInvariants() const {
  KV_CHECK(length_ <= slots());
  KV_CHECK(addresses_.size() == blocks_.size());
  const std::size_t filled = geometry().BlocksFor(length_);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    KV_CHECK(addresses_[i] == pool_->data(blocks_[i]));
    KV_CHECK(i < filled || pool_->IsWritable(blocks_[i]));
  }
}

}  // namespace kvasir::kvcache
