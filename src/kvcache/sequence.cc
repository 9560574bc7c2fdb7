#include "kvcache/sequence.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked.h"

namespace kvasir::kvcache {

using base::Result;

CachedSequence::CachedSequence(BlockPool& pool) : pool_(&pool) {
  const std::size_t groups = geometry().groups().size();
  tables_.reserve(groups);
  for (std::uint32_t i = 0; i < groups; ++i) tables_.emplace_back(pool, CacheGroupId(i));
}

// The moved-from one keeps its empty tables.
CachedSequence::CachedSequence(CachedSequence&& other) noexcept : CachedSequence(*other.pool_) {
  *this = std::move(other);
}

CachedSequence& CachedSequence::operator=(CachedSequence&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  std::swap(pool_, other.pool_);
  std::swap(length_, other.length_);
  std::swap(entries_, other.entries_);
  std::swap(tables_, other.tables_);
  std::swap(history_, other.history_);
  return *this;
}

Result<void> CachedSequence::Reserve(std::size_t count) {
  if (count == 0) return base::Success();
  DropUnseen();
  const std::size_t unused = slots() - length_;
  return Grow(geometry().BlocksFor(count > unused ? count - unused : 0));
}

// The budget is asked first, so that a count far beyond it touches no memory.
Result<void> CachedSequence::Grow(std::uint64_t missing) {
  const std::size_t last = length_ / geometry().block_tokens();
  std::uint64_t shared_bytes = 0;  // Of last blocks that others hold: must be copied.
  std::uint64_t kept_bytes = 0;    // That are ours but kept by an index: may be given up.
  for (const BlockTable& table : tables_) {
    if (!NextSlotIsReadOnly(table)) continue;
    const bool ours = pool_->references(table.blocks()[last]) == 1;
    (ours ? kept_bytes : shared_bytes) += BlockBytes(table);
  }
  if (missing == 0 && shared_bytes + kept_bytes == 0) return base::Success();
  const std::uint64_t fresh_bytes =
      base::CheckedMul(missing, geometry().block_bytes()).value_or(~std::uint64_t{0} / 2);
  if (kept_bytes > 0 && !pool_->CheckAvailable(fresh_bytes + shared_bytes + kept_bytes)) {
    KV_TRY(pool_->CheckAvailable(fresh_bytes + shared_bytes));
    for (const BlockTable& table : tables_) {
      if (!NextSlotIsReadOnly(table)) continue;
      if (pool_->references(table.blocks()[last]) == 1) pool_->MakeWritable(table.blocks()[last]);
    }
  } else {
    KV_TRY(pool_->CheckAvailable(fresh_bytes + shared_bytes + kept_bytes));
  }
  const std::size_t before = entries_;
  const auto filled = static_cast<std::uint32_t>(length_ % geometry().block_tokens());
  Result<void> done = base::Success();
  for (std::size_t i = 0; done && i < tables_.size(); ++i) done = tables_[i].Append(missing);
  for (std::size_t i = 0; done && i < tables_.size(); ++i) {
    if (NextSlotIsReadOnly(tables_[i])) done = tables_[i].CopyBlock(last, filled);
  }
  Shrink(done ? before + missing : before);
  return done;
}

Result<void> CachedSequence::ReserveSeen(std::size_t length) {
  KV_CHECK(entries_ == 0 && length_ == 0);
  KV_TRY(pool_->CheckAvailable(geometry().HeldBytes(length)));
  const std::uint64_t block_tokens = geometry().block_tokens();
  for (BlockTable& table : tables_) {
    const Retention& keep = geometry().group(table.group()).retention;
    for (std::size_t i = 0; i < geometry().BlocksFor(length); ++i) {
      if (!keep.NeedsBlock(i, length, block_tokens)) {
        table.Share(std::nullopt);
      } else if (Result<void> taken = table.Append(1); !taken) {
        Shrink(0);
        return taken;
      }
    }
  }
  entries_ = geometry().BlocksFor(length);
  return base::Success();
}

void CachedSequence::Shrink(std::size_t entries) {
  for (BlockTable& table : tables_) table.Shrink(entries);
  entries_ = entries;
}

bool CachedSequence::NextSlotIsReadOnly(const BlockTable& table) const {
  const std::size_t next = length_ / geometry().block_tokens();
  return next < entries_ && table.holds(next) && !pool_->IsWritable(table.blocks()[next]);
}

void CachedSequence::Advance(std::size_t count) {
  if (count == 0) return;
  KV_CHECK(count <= slots() - length_);
  for (const BlockTable& table : tables_) KV_CHECK(!NextSlotIsReadOnly(table));
  length_ += count;
}

void CachedSequence::ExtendHistory(std::span<const base::TokenId> tokens) {
  if (geometry().replayed_layers() == 0) return;
  history_.insert(history_.end(), tokens.begin(), tokens.end());
  KV_CHECK(history_.size() <= length_);
}

void CachedSequence::DropUnseen() {
  const std::uint64_t block_tokens = geometry().block_tokens();
  for (BlockTable& table : tables_) {
    const Retention& keep = geometry().group(table.group()).retention;
    if (keep.KeepsAll()) continue;
    // Blocks go in order, so the first one held after the sinks says that all before are gone.
    const std::size_t end = std::min<std::size_t>(keep.FirstNeeded(length_) / block_tokens,
                                                  geometry().BlocksFor(length_));
    for (std::size_t i = end; i-- > 0 && !keep.NeedsBlock(i, length_, block_tokens);) {
      if (!table.holds(i)) break;
      table.Drop(i);
    }
  }
}

bool CachedSequence::CanEndAt(const BlockTable& table, std::size_t length) const {
  const std::uint64_t block_tokens = geometry().block_tokens();
  const Retention& keep = geometry().group(table.group()).retention;
  if (keep.KeepsAll()) return true;
  for (std::size_t i = geometry().BlocksFor(length); i-- > 0;) {
    if (!keep.NeedsBlock(i, length, block_tokens)) break;  // Sinks are never dropped.
    if (!table.holds(i)) return false;
  }
  return true;
}

std::size_t CachedSequence::Truncate(std::size_t new_length) {
  KV_CHECK(new_length <= length_);
  const std::size_t block_tokens = geometry().block_tokens();
  std::size_t length = new_length;
  // Inside a block no shorter length needs less.
  while (!std::ranges::all_of(tables_,
                              [&](const BlockTable& table) { return CanEndAt(table, length); })) {
    length = (length - 1) / block_tokens * block_tokens;
  }
  Shrink(geometry().BlocksFor(length));
  length_ = length;
  history_.resize(std::min(history_.size(), length));
  return length;
}

CachedSequence CachedSequence::Fork() {
  CachedSequence fork(*pool_);
  const std::size_t filled = geometry().BlocksFor(length_);
  for (std::size_t i = 0; i < tables_.size(); ++i) fork.tables_[i] = tables_[i].Fork(filled);
  fork.entries_ = filled;
  fork.history_ = history_;
  fork.length_ = length_;
  return fork;
}

void CachedSequence::Share(std::span<const std::vector<std::optional<BlockId>>> blocks,
                           std::size_t length) {
  KV_CHECK(entries_ == 0 && length_ == 0 && blocks.size() == tables_.size());
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    KV_CHECK(blocks[i].size() == geometry().BlocksFor(length));
    for (const std::optional<BlockId>& block : blocks[i]) tables_[i].Share(block);
  }
  entries_ = geometry().BlocksFor(length);
  length_ = length;
}

void CachedSequence::ReplaceBlock(CacheGroupId group, std::size_t entry, BlockId same_contents) {
  KV_CHECK((entry + 1) * geometry().block_tokens() <= length_);
  tables_[group.index()].Replace(entry, same_contents);
}

kernels::KvView CachedSequence::View(const CachePart& part) const {
  KV_CHECK(part.policy.store == KvStore::kKv && !geometry().is_latent());
  kernels::KvView view = {.blocks = tables_[part.group->index()].addresses(),
                          .k_offset = part.k_offset,
                          .v_offset = part.v_offset,
                          .block_tokens = geometry().block_tokens(),
                          .kv_heads = part.heads,
                          .head_dim = geometry().head_dim(),
                          .k_type = part.policy.k,
                          .v_type = part.policy.v};
  if (part.tail_group) {
    view.group = part.policy.group;
    view.k_scale_offset = part.k_scale_offset;
    view.tail_blocks = tables_[part.tail_group->index()].addresses();
    view.tail_offset = part.tail_offset;
  }
  return view;
}

kernels::KvView CachedSequence::View(std::size_t layer) const {
  KV_CHECK(geometry().parts(layer).size() == 1);
  return View(geometry().parts(layer)[0]);
}

float* CachedSequence::HiddenRow(const CachePart& part, std::size_t position) const {
  KV_CHECK(part.policy.store == KvStore::kHidden);
  const std::size_t block_tokens = geometry().block_tokens();
  std::byte* block = tables_[part.group->index()].addresses()[position / block_tokens];
  return reinterpret_cast<float*>(block + part.row_offset) +
         position % block_tokens * geometry().hidden_dim();
}

kernels::LatentView CachedSequence::Latents(std::size_t layer) const {
  const CacheGeometry& shape = geometry();
  return {.blocks = tables_[0].addresses(),
          .offset = shape.latent_offset(layer),
          .block_tokens = shape.block_tokens(),
          .latent_dim = shape.latent_dim(),
          .rope_dim = shape.rope_dim()};
}

std::uint64_t CachedSequence::held_bytes() const {
  std::uint64_t bytes = 0;
  for (const BlockTable& table : tables_) bytes += table.held_blocks() * BlockBytes(table);
  return bytes;
}

std::uint64_t CachedSequence::held_bytes(std::size_t layer) const {
  std::uint64_t bytes = 0;
  for (const CachePart& part : geometry().parts(layer)) {
    if (part.group) bytes += tables_[part.group->index()].held_blocks() * part.block_bytes;
    if (part.tail_group) {
      bytes += tables_[part.tail_group->index()].held_blocks() * part.tail_block_bytes;
    }
  }
  return bytes;
}

std::uint64_t CachedSequence::shared_bytes() const {
  std::uint64_t bytes = 0;
  for (const BlockTable& table : tables_) bytes += table.shared_blocks() * BlockBytes(table);
  return bytes;
}

// The blocks at or beyond length() are held in every group.
std::uint64_t CachedSequence::waste_bytes() const {
  return (slots() - length_) * geometry().block_bytes() / geometry().block_tokens();
}

void CachedSequence::CheckInvariants() const {
  KV_CHECK(length_ <= slots() && history_.size() <= length_);
  const std::size_t filled = geometry().BlocksFor(length_);
  const std::uint64_t block_tokens = geometry().block_tokens();
  for (const BlockTable& table : tables_) {
    table.CheckInvariants();
    KV_CHECK(table.entries() == entries_);
    const Retention& keep = geometry().group(table.group()).retention;
    for (std::size_t i = 0; i < entries_; ++i) {
      KV_CHECK(table.holds(i) || (i < filled && !keep.NeedsBlock(i, length_, block_tokens)));
      KV_CHECK(i < filled || pool_->IsWritable(table.blocks()[i]));
    }
  }
}

}  // namespace kvasir::kvcache
