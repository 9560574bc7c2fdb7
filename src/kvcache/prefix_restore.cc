#include "kvcache/prefix_restore.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kvcache/swap_file.h"

namespace kvasir::kvcache {
namespace {

// Whose blocks say how far a text is stored: one that keeps all, if there is one.
CacheGroupId Spine(const CacheGeometry& geometry) {
  std::optional<std::uint32_t> stored;
  for (std::uint32_t i = 0; i < geometry.groups().size(); ++i) {
    if (geometry.groups()[i].retention.KeepsAll()) return CacheGroupId(i);
    if (geometry.groups()[i].IsStored() && !stored) stored = i;
  }
  KV_CHECK(stored.has_value());  // Beside a tail there is the group whose keys it precedes.
  return CacheGroupId(*stored);
}

// Whether a group that forgets old positions finds all it must hold of so many blocks.
bool HasNeeded(const Retention& keep, const CacheGeometry& geometry,
               const std::vector<StoredBlock>& found, std::size_t blocks) {
  const std::uint64_t block_tokens = geometry.block_tokens();
  const std::size_t sinks = std::min<std::size_t>(blocks, geometry.BlocksFor(keep.sinks));
  for (std::size_t i = 0; i < sinks; ++i) {
    if (!found[i].found) return false;
  }
  for (std::size_t i = blocks; i-- > sinks;) {
    if (!keep.NeedsBlock(i, blocks * block_tokens, block_tokens)) break;
    if (!found[i].found) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<PrefixRestore> PrefixRestore::Begin(SequenceManager& manager, SequenceId id,
                                                    std::span<const base::TokenId> text,
                                                    BlockStore* store) {
  if (store == nullptr || !manager.has_index()) return nullptr;
  const std::size_t block_tokens = manager.geometry().block_tokens();
  const std::size_t held = std::as_const(manager).cache(id).length();
  const std::size_t complete =
      std::min<std::size_t>(text.size(), manager.max_indexed_tokens()) / block_tokens;
  if (complete * block_tokens <= held) return nullptr;
  return std::unique_ptr<PrefixRestore>(
      new PrefixRestore(manager, id, text.first(complete * block_tokens), *store));
}

PrefixRestore::PrefixRestore(SequenceManager& manager, SequenceId id,
                             std::span<const base::TokenId> text, BlockStore& store)
    : manager_(manager),
      store_(store),
      id_(id),
      text_(text.begin(), text.end()),
      blocks_(manager.IdentitiesOf(manager.tenant_of(id), text)),
      had_(std::as_const(manager).cache(id).length()) {
  const CacheGeometry& geometry = manager.geometry();
  const std::size_t first = geometry.KeepsAll() ? had_ / geometry.block_tokens() : 0;
  for (std::size_t i = first; i < blocks_.size(); ++i) wanted_.push_back({Spine(geometry), i});
  asked_ = wanted_.size();
  read_ = Ask(wanted_, true);
}

std::shared_ptr<StoreRead> PrefixRestore::Ask(std::span<const Wanted> wanted, bool probe) {
  std::vector<BlockIdentity> identities;
  identities.reserve(wanted.size());
  for (const Wanted& block : wanted) {
    BlockIdentity& identity = identities.emplace_back(blocks_[block.entry]);
    identity.group = block.group.index();
    identity.bytes = manager_.geometry().group(block.group).block_bytes;
  }
  deadline_ = std::chrono::steady_clock::now() + store_.patience();
  return store_.Read(std::move(identities), probe);
}

bool PrefixRestore::Poll() {
  if (!read_->Wait(std::chrono::microseconds(0))) {
    return std::chrono::steady_clock::now() >= deadline_;
  }
  std::vector<StoredBlock> blocks = read_->Take();
  KV_CHECK(blocks.size() == asked_);
  if (probing_) return TakeProbe(blocks);
  const bool over = whole_ > 0 ? TakePart(std::move(blocks)) : TakeNext(blocks);
  if (!over) AskPiece();
  return over;
}

bool PrefixRestore::TakeProbe(const std::vector<StoredBlock>& blocks) {
  probing_ = false;
  const CacheGeometry& geometry = manager_.geometry();
  const Retention& keep = geometry.group(wanted_.front().group).retention;
  std::size_t there = 0;
  if (keep.KeepsAll()) {
    while (there < blocks.size() && blocks[there].found) ++there;
  } else {
    there = blocks.size();
    while (there > 0 && !HasNeeded(keep, geometry, blocks, there)) --there;
  }
  wanted_.resize(there);
  if (wanted_.empty()) return true;
  if (!geometry.KeepsAll() && BeginWhole(wanted_.back().entry + 1)) return true;
  AskPiece();
  return false;
}

void PrefixRestore::AskPiece() {
  std::uint64_t bytes = 0;
  asked_ = 0;
  while (taken_ + asked_ < wanted_.size() && (asked_ == 0 || bytes < kPieceBytes)) {
    bytes += manager_.geometry().group(wanted_[taken_ + asked_].group).block_bytes;
    ++asked_;
  }
  read_ = Ask(std::span(wanted_).subspan(taken_, asked_), false);
}

// The sequence grows by the blocks that came, as if they had been computed.
bool PrefixRestore::TakeNext(const std::vector<StoredBlock>& blocks) {
  const auto missing = std::ranges::find_if(blocks, [](const auto& block) { return !block.found; });
  const auto found = static_cast<std::size_t>(missing - blocks.begin());
  if (found == 0) return true;
  const std::size_t block_tokens = manager_.geometry().block_tokens();
  const std::size_t first = wanted_[taken_].entry;
  // What it shares of the next block, only in part, is in the store's block too.
  if (taken_ == 0) manager_.Truncate(id_, first * block_tokens);
  CachedSequence& cache = manager_.cache(id_);
  if (!cache.Reserve(found * block_tokens)) return true;
  const auto tokens = std::span(text_).subspan(first * block_tokens, found * block_tokens);
  for (std::size_t i = 0; i < found; ++i) {
    const std::span<const std::byte> bytes = blocks[i].bytes.span();
    std::memcpy(cache.tables()[0].addresses()[first + i], bytes.data(), bytes.size());
  }
  cache.Advance(tokens.size());
  cache.ExtendHistory(tokens);
  manager_.CommitRestored(id_, tokens);
  taken_ += found;
  return found < blocks.size() || taken_ == wanted_.size();
}

// Asks for what a sequence of so many blocks must hold. What the index has of it would not do: of
// a longer text, it has given up what that one does not need.
bool PrefixRestore::BeginWhole(std::size_t blocks) {
  const CacheGeometry& geometry = manager_.geometry();
  const std::size_t length = blocks * geometry.block_tokens();
  if (length <= had_ || ++tries_ > kMostTries) return true;
  whole_ = blocks;
  wanted_.clear();
  parts_.clear();
  taken_ = 0;
  (void)VisitSwapped(geometry, length, [&](CacheGroupId group, std::size_t entry) {
    wanted_.push_back({group, entry});
    return base::Result<void>(base::Success());
  });
  return false;
}

bool PrefixRestore::TakePart(std::vector<StoredBlock> blocks) {
  for (StoredBlock& block : blocks) {
    // Without it the text can be restored to its beginning at most.
    if (!block.found) return BeginWhole(wanted_[taken_].entry);
    parts_.push_back(std::move(block));
    ++taken_;
  }
  if (taken_ < wanted_.size()) return false;
  const auto tokens = std::span(text_).first(whole_ * manager_.geometry().block_tokens());
  manager_.Truncate(id_, 0);
  CachedSequence& cache = manager_.cache(id_);
  if (!cache.ReserveSeen(tokens.size())) {
    manager_.TakePrefix(id_, text_);
    return true;
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::span<const std::byte> bytes = parts_[i].bytes.span();
    std::memcpy(cache.table(wanted_[i].group).addresses()[wanted_[i].entry], bytes.data(),
                bytes.size());
  }
  cache.Advance(tokens.size());
  cache.ExtendHistory(tokens);
  manager_.CommitRestored(id_, tokens);
  return true;
}

std::size_t ImportPrefix(SequenceManager& manager, std::uint64_t tenant_salt,
                         std::span<const base::TokenId> text, BlockStore& from) {
  const SequenceId id = manager.Create(tenant_salt);
  manager.TakePrefix(id, text);
  const auto restore = PrefixRestore::Begin(manager, id, text, &from);
  while (restore && !restore->Poll()) restore->Wait(from.patience());
  const std::size_t length = std::as_const(manager).cache(id).length();
  manager.Finish(id);
  return length;
}

}  // namespace kvasir::kvcache
