#include "kvcache/sequence_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "kvcache/layout_name.h"
#include "kvcache/swap_file.h"

namespace kvasir::kvcache {

using base::Result;

Result<std::unique_ptr<SequenceManager>> SequenceManager::Make(
    const CacheGeometry& geometry, const SequenceManagerOptions& options) {
  KV_TRY(auto pool, BlockPool::Make(geometry, options.pool));
  return std::unique_ptr<SequenceManager>(new SequenceManager(options, std::move(pool)));
}

SequenceManager::SequenceManager(const SequenceManagerOptions& options,
                                 std::unique_ptr<BlockPool> pool)
    : options_(options), pool_(std::move(pool)), layout_(LayoutName(pool_->geometry())) {
  // Where nothing is stored, there is nothing to find.
  if (options.prefix_index && !geometry().groups().empty()) index_.emplace(*pool_, options.index);
}

SequenceManager::~SequenceManager() {
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i]) Finish(SequenceId(i));
  }
}

const SequenceManager::Entry& SequenceManager::At(SequenceId id) const {
  KV_CHECK(id.index() < entries_.size() && entries_[id.index()].has_value());
  return *entries_[id.index()];
}

SequenceManager::Entry& SequenceManager::At(SequenceId id) {
  return const_cast<Entry&>(std::as_const(*this).At(id));
}

SequenceManager::Entry& SequenceManager::Running(SequenceId id) {
  Entry& entry = At(id);
  KV_CHECK(!entry.preempted);
  return entry;
}

SequenceId SequenceManager::Add(Entry entry) {
  if (unused_.empty()) {
    unused_.emplace_back(static_cast<std::uint32_t>(entries_.size()));
    entries_.emplace_back();
  }
  const SequenceId id = unused_.back();
  unused_.pop_back();
  entries_[id.index()].emplace(std::move(entry));
  return id;
}

SequenceId SequenceManager::Create(std::uint64_t tenant_salt) {
  return Add(
      {.tenant_salt = tenant_salt, .cache = CachedSequence(*pool_), .tokens = {}, .log_probs = {}});
}

std::size_t SequenceManager::TakePrefix(SequenceId id, std::span<const TokenId> tokens) {
  Entry& entry = Running(id);
  const std::size_t known = std::min(entry.tokens.size(), tokens.size());
  KV_CHECK(std::ranges::equal(std::span(entry.tokens).first(known), tokens.first(known)));
  return TakePrefix(entry, tokens);
}

std::size_t SequenceManager::TakePrefix(Entry& entry, std::span<const TokenId> tokens) {
  if (!index_) return 0;
  const PrefixMatch match = index_->Find(entry.tenant_salt, tokens);
  entry.cache.Share(match.blocks, match.length);
  if (match.length > entry.tokens.size()) {
    entry.tokens.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(match.length));
  }
  entry.committed = match.length;
  entry.cache.ExtendHistory(std::span(entry.tokens).first(match.length));
  counts_.hit_tokens += match.length;
  const std::size_t complete = match.length / geometry().block_tokens();
  if (complete < match.nodes.size()) CopyLogProbs(entry, match.nodes.back(), match.length);
  SetPath(entry, std::span(match.nodes).first(complete));
  return match.length;
}

void SequenceManager::CopyLogProbs(Entry& entry, PrefixNodeId node, std::size_t length) {
  const std::size_t block_tokens = geometry().block_tokens();
  for (std::size_t p = length / block_tokens * block_tokens; p < length; ++p) {
    const PromptLogProbs* kept = index_->LogProbs(node, p % block_tokens);
    if (kept != nullptr) entry.log_probs.insert_or_assign(p, *kept);
  }
}

void SequenceManager::SetPath(Entry& entry, std::span<const PrefixNodeId> path) {
  if (!path.empty()) index_->Pin(path.back());
  if (!entry.path.empty()) index_->Unpin(entry.path.back());
  entry.path.assign(path.begin(), path.end());
  entry.witnesses.resize(std::min(entry.witnesses.size(), path.size()));
  entry.collided = false;
}

void SequenceManager::ShortenPath(Entry& entry, std::size_t length) {
  const std::size_t complete = length / geometry().block_tokens();
  if (complete < entry.path.size()) {
    const std::vector<PrefixNodeId> path = entry.path;
    SetPath(entry, std::span(path).first(complete));
  }
  entry.collided = false;
}

std::optional<base::Hash128> SequenceManager::NextBlockName(SequenceId id,
                                                            std::span<const TokenId> text) const {
  const Entry& entry = At(id);
  const std::size_t block_tokens = geometry().block_tokens();
  const std::size_t block = entry.committed / block_tokens;
  if (!index_ || text.size() < (block + 1) * block_tokens) return std::nullopt;
  KV_CHECK(std::ranges::equal(std::span(entry.tokens).first(entry.committed),
                              text.first(entry.committed)));
  std::optional<PrefixNodeId> parent;
  if (block > 0) {
    parent = NodeOf(entry, block - 1);
    if (!parent) return std::nullopt;
  }
  return index_->HashOf(entry.tenant_salt, parent,
                        text.subspan(block * block_tokens, block_tokens));
}

CachedSequence& SequenceManager::cache(SequenceId id) { return Running(id).cache; }

void SequenceManager::Commit(SequenceId id, std::span<const TokenId> tokens) {
  Entry& entry = Running(id);
  TakeCommitted(entry, tokens);
  IndexBlocks(entry);
  entry.cache.DropUnseen();
}

void SequenceManager::CommitRestored(SequenceId id, std::span<const TokenId> tokens) {
  Entry& entry = Running(id);
  TakeCommitted(entry, tokens);
  counts_.restored_tokens += tokens.size();
  IndexBlocks(entry, true);
  entry.cache.DropUnseen();
}

void SequenceManager::TakeCommitted(Entry& entry, std::span<const TokenId> tokens) {
  KV_CHECK(entry.cache.length() == entry.committed + tokens.size());
  const std::size_t known = std::min(entry.tokens.size() - entry.committed, tokens.size());
  KV_CHECK(std::ranges::equal(std::span(entry.tokens).subspan(entry.committed, known),
                              tokens.first(known)));
  entry.tokens.insert(entry.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(known),
                      tokens.end());
  entry.committed = entry.cache.length();
}

std::optional<PrefixNodeId> SequenceManager::NodeOf(const Entry& entry, std::size_t block) const {
  return block < entry.path.size() ? std::optional(entry.path[block]) : std::nullopt;
}

void SequenceManager::IndexBlocks(Entry& entry, bool restored) {
  if (!index_) return;
  const std::size_t block_tokens = geometry().block_tokens();
  const std::uint64_t most = std::min<std::uint64_t>(entry.committed, options_.max_indexed_tokens);
  while (!entry.collided && (entry.path.size() + 1) * block_tokens <= most) {
    entry.collided = !IndexNextBlock(entry, restored);
  }
}

bool SequenceManager::IndexNextBlock(Entry& entry, bool restored) {
  const std::size_t block_tokens = geometry().block_tokens();
  const std::size_t block = entry.path.size();
  const auto tokens = std::span(entry.tokens).subspan(block * block_tokens, block_tokens);
  GroupBlocks ours;
  for (const BlockTable& table : entry.cache.tables()) {
    ours.push_back(table.holds(block) ? std::optional(table.blocks()[block]) : std::nullopt);
  }
  const std::optional<PrefixNodeId> parent =
      block > 0 ? std::optional(entry.path.back()) : std::nullopt;
  const std::optional<PrefixNodeId> node = index_->Insert(entry.tenant_salt, parent, tokens, ours);
  if (!node) return false;
  index_->Pin(*node);
  if (parent) index_->Unpin(*parent);
  entry.path.push_back(*node);
  for (std::uint32_t group = 0; group < ours.size(); ++group) {
    const std::optional<BlockId> theirs = index_->block(*node, CacheGroupId(group));
    if (ours[group] && ours[group] != theirs) {
      entry.cache.ReplaceBlock(CacheGroupId(group), block, *theirs);
      ours[group].reset();
    }
  }
  if (options_.store != nullptr && !restored) PutBlock(entry, ours);
  const auto begin = entry.log_probs.lower_bound(block * block_tokens);
  const auto end = entry.log_probs.lower_bound((block + 1) * block_tokens);
  for (auto it = begin; it != end; ++it) {
    index_->KeepLogProbs(*node, it->first % block_tokens, std::move(it->second));
  }
  entry.log_probs.erase(begin, end);
  return true;
}

std::span<const TokenId> SequenceManager::pending(SequenceId id) const {
  const Entry& entry = At(id);
  return std::span(entry.tokens).subspan(entry.committed);
}

SequenceId SequenceManager::Fork(SequenceId id) {
  Entry& entry = Running(id);
  KV_CHECK(entry.committed == entry.cache.length());
  Entry twin = {.tenant_salt = entry.tenant_salt,
                .cache = entry.cache.Fork(),
                .tokens = entry.tokens,
                .committed = entry.committed,
                .path = {},
                .collided = false,
                .log_probs = entry.log_probs};
  SetPath(twin, entry.path);
  twin.collided = entry.collided;
  return Add(std::move(twin));
}

void SequenceManager::Truncate(SequenceId id, std::size_t length) {
  Entry& entry = Running(id);
  KV_CHECK(length <= entry.committed && entry.committed == entry.cache.length());
  const std::size_t block_tokens = geometry().block_tokens();
  if (length % block_tokens != 0) {
    if (const auto node = NodeOf(entry, length / block_tokens)) CopyLogProbs(entry, *node, length);
  }
  ShortenPath(entry, length);
  entry.tokens.resize(length);
  entry.committed = entry.cache.Truncate(length);
  ShortenPath(entry, entry.committed);
  entry.log_probs.erase(entry.log_probs.lower_bound(length), entry.log_probs.end());
}

Preemption SequenceManager::Preempt(SequenceId id, Preemption how) {
  Entry& entry = Running(id);
  KV_CHECK(entry.committed == entry.cache.length());
  const bool swapped = how == Preemption::kSwap && WriteSwap(id, entry);
  ++(swapped ? counts_.swapped : counts_.dropped);
  SetPath(entry, {});
  entry.cache.Reset();
  entry.committed = 0;
  entry.preempted = true;
  return swapped ? Preemption::kSwap : Preemption::kDrop;
}

Result<std::size_t> SequenceManager::Resume(SequenceId id) {
  Entry& entry = At(id);
  KV_CHECK(entry.preempted);
  std::size_t length = 0;
  if (entry.swapped_length > 0) {
    KV_TRY(length, SwapIn(id, entry));
  }
  if (length == 0) length = TakePrefix(entry, entry.tokens);
  entry.preempted = false;
  return length;
}

void SequenceManager::CountHits(SequenceId id) {
  for (const PrefixNodeId node : Running(id).path) index_->CountHit(node);
}

std::uint64_t SequenceManager::hits(BlockId id) const {
  const std::optional<PrefixNodeId> node = index_ ? index_->NodeOf(id) : std::nullopt;
  return node ? index_->hits(*node) : 0;
}

std::vector<PrefixNodeReport> SequenceManager::Indexed(std::uint64_t tenant_salt) const {
  return index_ ? index_->Report(tenant_salt) : std::vector<PrefixNodeReport>();
}

void SequenceManager::Finish(SequenceId id) {
  Entry& entry = At(id);
  RemoveSwap(id, entry);
  SetPath(entry, {});
  entries_[id.index()].reset();
  unused_.push_back(id);
}

const PromptLogProbs* SequenceManager::LogProbs(SequenceId id, std::size_t position) const {
  const Entry& entry = At(id);
  KV_CHECK(position < entry.committed);
  const auto own = entry.log_probs.find(position);
  if (own != entry.log_probs.end()) return &own->second;
  const std::size_t block_tokens = geometry().block_tokens();
  const std::optional<PrefixNodeId> node = NodeOf(entry, position / block_tokens);
  return node ? index_->LogProbs(*node, position % block_tokens) : nullptr;
}

void SequenceManager::KeepLogProbs(SequenceId id, std::size_t position, PromptLogProbs log_probs) {
  Entry& entry = Running(id);
  KV_CHECK(position < entry.committed);
  const std::size_t block_tokens = geometry().block_tokens();
  const std::size_t block = position / block_tokens;
  const std::optional<PrefixNodeId> node = NodeOf(entry, block);
  if (node && (block + 1) * block_tokens <= entry.committed) {
    index_->KeepLogProbs(*node, position % block_tokens, std::move(log_probs));
  } else {
    entry.log_probs.insert_or_assign(position, std::move(log_probs));
  }
}

// ------------------------------------------------------------------ swap

std::string SequenceManager::SwapPath(SequenceId id) const {
  return fmt::format("{}/sequence-{}.kvswap", options_.swap_directory, id.index());
}

bool SequenceManager::WriteSwap(SequenceId id, Entry& entry) {
  if (options_.swap_env == nullptr || options_.swap_directory.empty()) return false;
  if (entry.committed == 0) return false;
  const SwapKey key = {options_.index.fingerprint, std::span(entry.tokens).first(entry.committed)};
  entry.swapped_length = entry.committed;
  const Result<std::uint64_t> written =
      WriteSwapFile(*options_.swap_env, SwapPath(id), key, entry.cache);
  if (written) {
    entry.swapped_bytes = written.value();
    return true;
  }
  ++counts_.swap_write_faults;
  RemoveSwap(id, entry);
  return false;
}

void SequenceManager::RemoveSwap(SequenceId id, Entry& entry) {
  if (entry.swapped_length == 0) return;
  entry.swapped_length = 0;
  entry.swapped_bytes = 0;
  // One that stays behind is never believed of another sequence.
  if (options_.swap_env->Exists(SwapPath(id))) (void)options_.swap_env->Remove(SwapPath(id));
}

Result<std::size_t> SequenceManager::SwapIn(SequenceId id, Entry& entry) {
  const std::size_t length = entry.swapped_length;
  const auto tokens = std::span(entry.tokens).first(length);
  std::size_t found = 0;
  Result<void> reserved = base::Success();
  if (index_ && geometry().KeepsAll()) {  // Blocks still cached need no reading, and stay shared.
    PrefixMatch match = index_->Find(entry.tenant_salt, tokens);
    const std::size_t blocks = match.length / geometry().block_tokens();
    found = blocks * geometry().block_tokens();
    match.blocks[0].resize(blocks);
    entry.cache.Share(match.blocks, found);
    SetPath(entry, std::span(match.nodes).first(blocks));
    reserved = entry.cache.Reserve(length - found);
  } else {
    reserved = entry.cache.ReserveSeen(length);
  }
  if (!reserved) {
    SetPath(entry, {});
    entry.cache.Reset();
    return std::move(reserved).as_failure();
  }
  const Result<void> read =
      found < length ? ReadSwap(entry, SwapPath(id), found) : Result<void>(base::Success());
  RemoveSwap(id, entry);
  if (!read) {
    ++counts_.swap_read_faults;
    SetPath(entry, {});
    entry.cache.Reset();
    return 0;
  }
  entry.cache.Advance(length - found);
  entry.cache.ExtendHistory(tokens);
  counts_.hit_tokens += found;
  counts_.swap_in_tokens += length - found;
  entry.committed = length;
  IndexBlocks(entry);
  return length;
}

Result<void> SequenceManager::ReadSwap(Entry& entry, const std::string& path, std::size_t found) {
  const SwapKey key = {options_.index.fingerprint,
                       std::span(entry.tokens).first(entry.swapped_length)};
  KV_TRY(auto reader, SwapReader::Open(*options_.swap_env, path, key, geometry()));
  const std::size_t first = found / geometry().block_tokens();
  return VisitSwapped(geometry(), entry.swapped_length, [&](CacheGroupId group, std::size_t i) {
    std::byte* to = i < first ? nullptr : entry.cache.table(group).addresses()[i];
    return reader.ReadBlock(geometry().group(group).block_bytes, to);
  });
}

// ------------------------------------------------------------------ reports

SequenceReport SequenceManager::report(SequenceId id) const {
  const Entry& entry = At(id);
  return {.length = entry.committed,
          .pending = entry.tokens.size() - entry.committed,
          .preempted = entry.preempted,
          .held_bytes = entry.cache.held_bytes(),
          .shared_bytes = entry.cache.shared_bytes(),
          .waste_bytes = entry.cache.waste_bytes(),
          .swapped_bytes = entry.swapped_bytes};
}

ManagerReport SequenceManager::report() const {
  ManagerReport report = counts_;
  report.pool = pool_->stats();
  if (index_) report.index = index_->stats();
  const std::size_t block_tokens = geometry().block_tokens();
  std::unordered_map<BlockId, std::size_t> filled;  // Slots, of blocks not complete in some table.
  bool may_be_complete = false;                     // One of them, in another table.
  for (const std::optional<Entry>& entry : entries_) {
    if (!entry) continue;
    ++(entry->preempted ? report.preempted : report.running);
    report.swapped_bytes += entry->swapped_bytes;
    const std::size_t length = entry->cache.length();
    for (const BlockTable& table : entry->cache.tables()) {
      const std::span<const BlockId> blocks = table.blocks();
      for (std::size_t i = length / block_tokens; i < blocks.size(); ++i) {
        std::size_t& most = filled[blocks[i]];
        const std::size_t ours = i * block_tokens < length ? length - i * block_tokens : 0;
        most = std::max(most, pool_->kept(blocks[i]) ? block_tokens : ours);
        if (most < block_tokens && pool_->references(blocks[i]) > 1) may_be_complete = true;
      }
    }
  }
  for (const std::optional<Entry>& entry : entries_) {
    if (!entry || !may_be_complete) continue;
    for (const BlockTable& table : entry->cache.tables()) {
      for (std::size_t i = 0; i < entry->cache.length() / block_tokens; ++i) {
        const auto found = table.holds(i) ? filled.find(table.blocks()[i]) : filled.end();
        if (found != filled.end()) found->second = block_tokens;
      }
    }
  }
  for (const auto& [block, slots] : filled) {
    const std::uint64_t bytes = geometry().group(pool_->group(block)).block_bytes;
    report.waste_bytes += (block_tokens - slots) * bytes / block_tokens;
  }
  return report;
}

void SequenceManager::CheckInvariants() const {
  pool_->CheckInvariants();
  if (index_) index_->CheckInvariants();
  std::uint64_t references = 0;
  std::size_t entries = 0;
  for (const std::optional<Entry>& entry : entries_) {
    if (!entry) continue;
    ++entries;
    for (const BlockTable& table : entry->cache.tables()) references += table.held_blocks();
    CheckEntry(*entry);
  }
  KV_CHECK(references == pool_->stats().references);
  KV_CHECK(entries + unused_.size() == entries_.size());
}

void SequenceManager::CheckEntry(const Entry& entry) const {
  entry.cache.CheckInvariants();
  KV_CHECK(entry.committed <= entry.cache.length() && entry.committed <= entry.tokens.size());
  KV_CHECK(!entry.preempted || (entry.cache.entries() == 0 && entry.path.empty()));
  KV_CHECK((entry.swapped_length > 0) == (entry.swapped_bytes > 0));
  const std::size_t block_tokens = geometry().block_tokens();
  const std::uint64_t most = std::min<std::uint64_t>(entry.committed, options_.max_indexed_tokens);
  KV_CHECK(!index_ || entry.collided || entry.path.size() == most / block_tokens);
  KV_CHECK(!entry.collided || index_->stats().collisions > 0);
  std::optional<PrefixNodeId> parent;
  for (std::size_t i = 0; i < entry.path.size(); ++i) {
    const PrefixNodeId node = entry.path[i];
    KV_CHECK(std::ranges::equal(index_->tokens(node),
                                std::span(entry.tokens).subspan(i * block_tokens, block_tokens)));
    KV_CHECK(index_->ParentOf(node) == parent);
    for (const BlockTable& table : entry.cache.tables()) {
      if (table.holds(i)) KV_CHECK(index_->block(node, table.group()) == table.blocks()[i]);
    }
    parent = node;
  }
  KV_CHECK(entry.log_probs.empty() || entry.log_probs.rbegin()->first < entry.tokens.size());
}

}  // namespace kvasir::kvcache
