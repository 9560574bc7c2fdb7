// For tests and the fuzz target: a SequenceManager of any cache policy beside an obvious, slow
// model of it. What every byte of a position must be is a function of the tokens up to it; what
// must be held follows from the policy alone; what a text finds, what a truncation leaves and
// whether a step fits is tried out length by length and block by block.
#ifndef KVASIR_KVCACHE_GROUP_TEST_ORACLE_H_
#define KVASIR_KVCACHE_GROUP_TEST_ORACLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "kvcache/cache_test_peer.h"
#include "kvcache/group_test_bytes.h"
#include "kvcache/sequence_manager.h"

namespace kvasir::kvcache {

struct GroupOracleOptions {
  std::uint64_t budget_bytes = 0;
  std::size_t sequences = 3;
  std::optional<std::uint64_t> placement_seed = std::nullopt;
  bool prefix_index = true;
  std::uint64_t max_idle_bytes = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_indexed_tokens = std::numeric_limits<std::uint64_t>::max();
  base::Env* swap_env = nullptr;  // Null: preemption always drops.
  std::string swap_directory = {};
  bool swap_may_fail = false;  // A fault-injecting Env.
};

// Single-threaded. Sequences are named by index. The first difference is told by problem().
class GroupOracle {
 public:
  using Tokens = std::vector<base::TokenId>;

  GroupOracle(const CacheGeometry& geometry, const GroupOracleOptions& options)
      : geometry_(geometry), bytes_(geometry_), options_(options), sequences_(options.sequences) {
    SequenceManagerOptions wanted;
    wanted.pool.budget_bytes = options.budget_bytes;
    wanted.pool.placement_seed = options.placement_seed;
    wanted.prefix_index = options.prefix_index;
    wanted.index.max_idle_bytes = options.max_idle_bytes;
    wanted.max_indexed_tokens = options.max_indexed_tokens;
    wanted.swap_env = options.swap_env;
    wanted.swap_directory = options.swap_directory;
    manager_ = SequenceManager::Make(geometry, wanted).value();
    for (Sequence& s : sequences_) s.id = manager_->Create().index();
    seen_.resize(geometry.groups().size());
    for (const CachePart& part : geometry_.all_parts()) {
      if (part.group) {
        seen_[part.group->index()] = {.window = part.policy.window, .sinks = part.policy.sinks};
      }
      if (part.tail_group) seen_[part.tail_group->index()] = {.tail = part.policy.group};
    }
  }

  std::size_t size() const { return sequences_.size(); }
  std::size_t length(std::size_t i) const { return sequences_[i].length; }
  std::size_t known(std::size_t i) const { return sequences_[i].tokens.size(); }
  const std::string& problem() const { return problem_; }
  SequenceManager& manager() { return *manager_; }
  std::uint64_t shortened() const { return shortened_; }  // Truncations that had to drop more.
  std::uint64_t partial_hits() const { return partial_hits_; }

  // Computes what is pending and then these tokens; a sequence without blocks first takes the
  // longest cached prefix. False if the model says that the budget does not hold it.
  bool Append(std::size_t i, const Tokens& more) {
    Sequence& s = sequences_[i];
    if (s.preempted) return false;
    Tokens text = s.tokens;
    text.insert(text.end(), more.begin(), more.end());
    if (Cache(s).entries() == 0) TakePrefix(s, text);
    const Tokens fresh(text.begin() + static_cast<std::ptrdiff_t>(s.length), text.end());
    if (fresh.empty()) return true;
    if (!Reserve(s, fresh.size())) return false;
    s.tokens = text;
    Store(s, s.length, text.size(), 0);
    Cache(s).Advance(fresh.size());
    manager_->Commit(Id(s), fresh);
    const std::vector<std::uint32_t> stamps = Stamps(text);
    for (std::size_t p = s.length; p < text.size(); p += 3) {
      manager_->KeepLogProbs(Id(s), p, {.logprob = static_cast<double>(stamps[p])});
    }
    s.length = text.size();
    return true;
  }

  // A step that fails: reserves, stores rubbish, does not advance.
  bool FailedStep(std::size_t i, std::size_t count) {
    Sequence& s = sequences_[i];
    if (s.preempted || !Reserve(s, count)) return false;
    Store(s, s.length, s.length + count, 0x5EED);
    return true;
  }

  void Truncate(std::size_t i, std::size_t length) {
    Sequence& s = sequences_[i];
    if (s.preempted || length > s.length) return;
    std::size_t expected = length;
    while (!HoldsAllAt(Cache(s), expected)) --expected;
    if (expected < length) ++shortened_;
    manager_->Truncate(Id(s), length);
    s.tokens.resize(length);
    s.length = expected;
    Expect(Cache(s).length() == expected, "length left by a truncation");
  }

  void Finish(std::size_t i, std::uint64_t tenant = 0) {
    Sequence& s = sequences_[i];
    manager_->Finish(Id(s));
    s = {.id = manager_->Create(tenant).index(), .tenant = tenant};
  }

  // `to` is replaced. Requires from != to.
  void Fork(std::size_t from, std::size_t to) {
    if (sequences_[from].preempted) return;
    manager_->Finish(Id(sequences_[to]));
    const std::uint64_t live = manager_->pool_stats().live_bytes;
    sequences_[to] = sequences_[from];
    sequences_[to].id = manager_->Fork(Id(sequences_[from])).index();
    Expect(manager_->pool_stats().live_bytes == live, "a fork that costs blocks");
  }

  void Preempt(std::size_t i, Preemption how) {
    Sequence& s = sequences_[i];
    if (s.preempted) return;
    const Preemption done = manager_->Preempt(Id(s), how);
    const bool can_swap = how == Preemption::kSwap && options_.swap_env != nullptr && s.length > 0;
    Expect(done == Preemption::kDrop || can_swap, "a swap from nothing");
    Expect(options_.swap_may_fail || (done == Preemption::kSwap) == can_swap, "no swap");
    s.swapped_length = done == Preemption::kSwap ? s.length : 0;
    s.preempted = true;
    s.length = 0;
  }

  // False if the model says that the budget does not hold what was swapped.
  bool Resume(std::size_t i) {
    Sequence& s = sequences_[i];
    if (!s.preempted) return true;
    const std::size_t swapped = s.swapped_length;
    const bool fits = swapped == 0 || FitsSwapped(s);
    const std::size_t found = LongestHit(s.tenant, s.tokens);
    const std::uint64_t faults = manager_->report().swap_read_faults;
    const base::Result<std::size_t> resumed = manager_->Resume(Id(s));
    Expect(resumed.has_value() == fits, "resume fits or not");
    if (!resumed) return false;
    const bool faulted = manager_->report().swap_read_faults > faults;
    Expect(!faulted || options_.swap_may_fail, "a swap file not believed");
    s.preempted = false;
    s.swapped_length = 0;
    s.length = resumed.value();
    if (swapped > 0 && !faulted) {
      Expect(s.length == swapped, "resumed length");
    } else if (!faulted) {  // What was given up for a file not believed is not predicted.
      Expect(s.length == found, "resumed length");
    }
    return true;
  }

  // Compares everything that can be seen, and checks the invariants.
  void Check() {
    manager_->CheckInvariants();
    for (const Sequence& s : sequences_) CheckSequence(s);
    CheckIndexed();
    CheckAccounts();
  }

  // Everything the future depends on but where blocks lie. Two worlds of one state behave alike.
  std::string State() {
    std::string state;
    for (const Sequence& s : sequences_) {
      state += Letters(s.tokens) + std::to_string(s.length) + (s.preempted ? "p" : "r");
      for (const BlockTable& table : std::as_const(*manager_).cache(Id(s)).tables()) {
        for (std::size_t b = 0; b < table.entries(); ++b) {
          state += table.holds(b) ? std::to_string(References(table.blocks()[b])) : "-";
        }
        state += ';';
      }
    }
    std::set<std::uint64_t> ticks;
    ForEachNode([&](std::uint32_t, const auto& node) {
      ticks.insert(node.last_use);
      ticks.insert(node.idle_at.begin(), node.idle_at.end());
    });
    const auto rank = [&](std::uint64_t tick) {
      return std::to_string(std::distance(ticks.begin(), ticks.find(tick))) + ',';
    };
    std::set<std::string> nodes;
    ForEachNode([&](std::uint32_t id, const auto& node) {
      std::string text = Letters(PrefixOf(id)) + std::to_string(node.pins) + rank(node.last_use);
      for (std::size_t g = 0; g < node.blocks.size(); ++g) {
        text += !node.blocks[g] ? "-" : IsLive(*node.blocks[g]) ? "l" : rank(node.idle_at[g]);
      }
      nodes.insert(text);
    });
    for (const std::string& node : nodes) state += node;
    return state;
  }

 private:
  struct Sequence {
    std::uint32_t id = 0;
    std::uint64_t tenant = 0;
    Tokens tokens = {};
    std::size_t length = 0;
    bool preempted = false;
    std::size_t swapped_length = 0;
  };
  // What queries see of a group, from the policies of its parts.
  struct Seen {
    std::uint64_t window = 0;
    std::uint64_t sinks = 0;
    std::uint64_t tail = 0;

    // By the query at position `length`, so by some query to come: those later see no more of it.
    bool Position(std::uint64_t p, std::uint64_t length) const {
      if (p >= length) return false;
      if (tail != 0) return p / tail == length / tail;
      return window == 0 || p < sinks || p + window > length;
    }
  };

  std::size_t BlockTokens() const { return geometry_.block_tokens(); }
  std::uint64_t BlockBytes(std::size_t group) const {
    return geometry_.groups()[group].block_bytes;
  }
  static SequenceId Id(const Sequence& s) { return SequenceId(s.id); }
  CachedSequence& Cache(const Sequence& s) { return manager_->cache(Id(s)); }
  std::uint32_t References(BlockId id) const { return manager_->pool_references(id); }
  bool IsLive(BlockId id) { return CacheTestPeer::pool(*manager_).live(id); }
  void Expect(bool holds, const char* what) {
    if (!holds && problem_.empty()) problem_ = what;
  }
  static std::string Letters(const Tokens& tokens) {
    std::string text;
    for (const base::TokenId token : tokens) text += static_cast<char>('a' + token % 26);
    return text + ';';
  }

  // What the tokens up to and with each position stand for. [tokens]
  static std::vector<std::uint32_t> Stamps(std::span<const base::TokenId> tokens) {
    std::vector<std::uint32_t> stamps;
    std::uint32_t stamp = 17;
    for (const base::TokenId token : tokens) {
      stamp = (stamp ^ (token + 0x9E3779B9u)) * 2654435761u;
      stamp ^= stamp >> 15;
      stamps.push_back(stamp);
    }
    return stamps;
  }

  // Whether a sequence of this length must hold the block: it holds a position that is seen, or the
  // next one will be written into it.
  bool Needs(std::size_t group, std::size_t b, std::size_t length) const {
    const std::size_t begin = b * BlockTokens();
    if (begin < length && length < begin + BlockTokens()) return true;
    for (std::size_t p = begin; p < begin + BlockTokens(); ++p) {
      if (seen_[group].Position(p, length)) return true;
    }
    return false;
  }
  bool HoldsAllAt(const CachedSequence& cache, std::size_t length) const {
    for (std::size_t g = 0; g < seen_.size(); ++g) {
      for (std::size_t b = 0; b * BlockTokens() < length; ++b) {
        if (Needs(g, b, length) && !cache.tables()[g].holds(b)) return false;
      }
    }
    return true;
  }

  // ---------------------------------------------------------------- the index

  template <typename Visit>
  void ForEachNode(const Visit& visit) {
    if (!CacheTestPeer::has_index(*manager_)) return;
    const auto& nodes = CacheTestPeer::nodes(CacheTestPeer::index(*manager_));
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i]) visit(i, *nodes[i]);
    }
  }
  // All tokens from the start of the text to the node's end.
  Tokens PrefixOf(std::uint32_t id) {
    const auto& node = CacheTestPeer::node(CacheTestPeer::index(*manager_), id);
    Tokens prefix = node.parent ? PrefixOf(node.parent->index()) : Tokens();
    prefix.insert(prefix.end(), node.tokens.begin(), node.tokens.end());
    return prefix;
  }
  // The nodes that begin most like the text, one after the other. Of equally good siblings: the
  // first in order at or after the text, else the last before it. Positions matched: *matched.
  std::vector<std::uint32_t> PathOf(std::uint64_t tenant, const Tokens& text,
                                    std::size_t* matched) {
    std::vector<std::uint32_t> path;
    *matched = 0;
    while (*matched % BlockTokens() == 0 && *matched < text.size()) {
      const auto from = text.begin() + static_cast<std::ptrdiff_t>(*matched);
      const Tokens rest(from, from + static_cast<std::ptrdiff_t>(
                                         std::min(BlockTokens(), text.size() - *matched)));
      std::size_t most = 0;
      std::optional<std::uint32_t> best;
      bool best_is_after = false;
      Tokens best_tokens;
      ForEachNode([&](std::uint32_t id, const auto& node) {
        const std::optional<std::uint32_t> parent =
            node.parent ? std::optional(node.parent->index()) : std::nullopt;
        const auto last = path.empty() ? std::nullopt : std::optional(path.back());
        if (node.tenant_salt != tenant || parent != last) return;
        std::size_t same = 0;
        while (same < rest.size() && node.tokens[same] == rest[same]) ++same;
        const bool after = !(node.tokens < rest);
        const bool nearer = after != best_is_after ? after : (node.tokens < best_tokens) == after;
        if (same == 0 || same < most || (same == most && !nearer)) return;
        most = same;
        best = id;
        best_is_after = after;
        best_tokens = node.tokens;
      });
      if (!best) break;
      path.push_back(*best);
      *matched += most;
    }
    return path;
  }
  // The longest beginning of the text of which every group has what it needs, length by length.
  std::size_t LongestHit(std::uint64_t tenant, const Tokens& text) {
    std::size_t length = 0;
    const std::vector<std::uint32_t> path = PathOf(tenant, text, &length);
    const auto has_all = [&] {
      for (std::size_t b = 0; b * BlockTokens() < length; ++b) {
        const auto& node = CacheTestPeer::node(CacheTestPeer::index(*manager_), path[b]);
        for (std::size_t g = 0; g < seen_.size(); ++g) {
          if (Needs(g, b, length) && !node.blocks[g]) return false;
        }
      }
      return true;
    };
    while (!has_all()) --length;
    return length;
  }
  void TakePrefix(Sequence& s, const Tokens& text) {
    const std::size_t expected = LongestHit(s.tenant, text);
    s.length = manager_->TakePrefix(Id(s), text);
    Expect(s.length == expected, "length of the prefix found");
    if (s.length % BlockTokens() != 0) ++partial_hits_;
    if (s.length > s.tokens.size()) {
      s.tokens.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(s.length));
    }
  }

  // ---------------------------------------------------------------- steps

  bool Reserve(Sequence& s, std::size_t count) {
    const CachedSequence& cache = Cache(s);
    const std::size_t unused = cache.entries() * BlockTokens() - s.length;
    std::uint64_t wanted = 0;
    for (std::size_t n = unused; n < count; n += BlockTokens()) wanted += geometry_.block_bytes();
    const std::size_t next = s.length / BlockTokens();
    for (std::size_t g = 0; g < seen_.size() && count > 0; ++g) {
      const BlockTable& table = cache.tables()[g];
      const bool shared = next < cache.entries() && References(table.blocks()[next]) > 1;
      if (shared) wanted += BlockBytes(g);
    }
    const bool fits = manager_->pool_stats().live_bytes + wanted <= options_.budget_bytes;
    const base::Result<void> reserved = Cache(s).Reserve(count);
    Expect(reserved.has_value() == fits, "reserve fits or not");
    Expect(reserved || reserved.error().code == base::ErrorCode::kExhausted, "code");
    return reserved.has_value();
  }
  // Writes positions [begin, end) of these tokens, as a step does.
  void Store(const Sequence& s, std::size_t begin, std::size_t end, std::uint32_t salt) {
    Tokens text = s.tokens;
    text.resize(end);
    const std::vector<std::uint32_t> stamps = Stamps(text);
    const CachedSequence& cache = Cache(s);
    for (std::size_t p = begin; p < end; ++p) {
      for (const CachePart& part : geometry_.all_parts()) {
        if (!part.group) continue;
        const auto write = [&](SlotKind kind, std::size_t at) {
          const CacheGroupId group = kind == SlotKind::kTail ? *part.tail_group : *part.group;
          std::byte* block = cache.table(group).addresses()[at / BlockTokens()];
          bytes_.Write(part, kind, block, at % BlockTokens(), stamps[p] ^ salt);
        };
        write(SlotKind::kStored, p);
        if (!part.tail_group) continue;
        write(SlotKind::kTail, p);
        const std::size_t group = part.policy.group;
        if ((p + 1) % group != 0) continue;
        for (std::size_t at = p + 1 - group; at <= p; ++at) write(SlotKind::kRounded, at);
      }
    }
  }
  bool FitsSwapped(const Sequence& s) {
    std::uint64_t bytes = manager_->pool_stats().live_bytes;
    std::size_t found = 0;
    if (geometry_.KeepsAll()) {  // What is cached still is shared.
      std::size_t matched = 0;
      const Tokens text(s.tokens.begin(),
                        s.tokens.begin() + static_cast<std::ptrdiff_t>(s.swapped_length));
      const std::vector<std::uint32_t> path = PathOf(s.tenant, text, &matched);
      found = matched / BlockTokens();
      for (std::size_t b = 0; b < found; ++b) {
        const auto& node = CacheTestPeer::node(CacheTestPeer::index(*manager_), path[b]);
        if (!IsLive(*node.blocks[0])) bytes += BlockBytes(0);
      }
    }
    for (std::size_t g = 0; g < seen_.size(); ++g) {
      for (std::size_t b = found; b * BlockTokens() < s.swapped_length; ++b) {
        if (Needs(g, b, s.swapped_length)) bytes += BlockBytes(g);
      }
    }
    return bytes <= options_.budget_bytes;
  }

  // ---------------------------------------------------------------- checks

  void CheckSequence(const Sequence& s) {
    Expect(manager_->is_preempted(Id(s)) == s.preempted, "preempted");
    Expect(std::ranges::equal(manager_->tokens(Id(s)), s.tokens), "tokens");
    Expect(manager_->pending(Id(s)).size() == s.tokens.size() - s.length, "pending");
    const CachedSequence& cache = std::as_const(*manager_).cache(Id(s));
    Expect(cache.length() == s.length, "length");
    if (!problem_.empty() || s.preempted) return;
    CheckHeld(s, cache);
    const std::vector<std::uint32_t> stamps = Stamps(s.tokens);
    for (const CachePart& part : geometry_.all_parts()) {
      if (!part.group) continue;
      CheckView(cache, part);
      for (std::size_t p = 0; p < s.length && problem_.empty(); ++p) {
        CheckPosition(cache, part, p, stamps);
      }
    }
    for (std::size_t p = 0; p < s.length; ++p) {
      const PromptLogProbs* kept = manager_->LogProbs(Id(s), p);
      Expect(kept == nullptr || kept->logprob == static_cast<double>(stamps[p]), "log prob");
    }
  }
  void CheckPosition(const CachedSequence& cache, const CachePart& part, std::size_t p,
                     std::span<const std::uint32_t> stamps) {
    const std::size_t length = cache.length();
    const std::size_t slot = p % BlockTokens();
    if (seen_[part.group->index()].Position(p, length)) {
      const std::byte* block = cache.table(*part.group).addresses()[p / BlockTokens()];
      Expect(block != nullptr, "a position that is seen but not held");
      if (block == nullptr) return;
      Expect(bytes_.Holds(part, SlotKind::kStored, block, slot, stamps[p]), "contents");
      const std::size_t group = part.policy.group;
      const bool rounded = part.tail_group && p / group < length / group;
      const std::uint32_t stamp = rounded ? stamps[p / group * group + group - 1] : 0;
      Expect(!rounded || bytes_.Holds(part, SlotKind::kRounded, block, slot, stamp), "rounded");
    }
    if (part.tail_group && seen_[part.tail_group->index()].Position(p, length)) {
      const std::byte* block = cache.table(*part.tail_group).addresses()[p / BlockTokens()];
      Expect(block != nullptr, "a key that is seen in full precision but not held");
      if (block == nullptr) return;
      Expect(bytes_.Holds(part, SlotKind::kTail, block, slot, stamps[p]), "tail");
    }
  }
  // Views and rows lead where the part's offsets do.
  void CheckView(const CachedSequence& cache, const CachePart& part) {
    const BlockTable& table = cache.table(*part.group);
    if (part.policy.store == KvStore::kHidden) {
      for (std::size_t p = 0; p < cache.length(); ++p) {
        const std::byte* block = table.addresses()[p / BlockTokens()];
        if (block == nullptr) continue;
        const std::byte* row =
            block + part.row_offset + p % BlockTokens() * geometry_.hidden_dim() * 4;
        Expect(reinterpret_cast<std::byte*>(cache.HiddenRow(part, p)) == row, "hidden row");
      }
      return;
    }
    const kernels::KvView view = cache.View(part);
    Expect(view.blocks == table.addresses() && view.k_offset == part.k_offset &&
               view.v_offset == part.v_offset && view.block_tokens == BlockTokens() &&
               view.kv_heads == part.heads && view.head_dim == geometry_.head_dim() &&
               view.k_type == part.policy.k && view.v_type == part.policy.v,
           "view");
    if (!part.tail_group) return;
    Expect(view.tail_blocks == cache.table(*part.tail_group).addresses() &&
               view.tail_offset == part.tail_offset && view.group == part.policy.group &&
               view.k_scale_offset == part.k_scale_offset,
           "view of a tail");
  }
  // Of every group exactly what is needed is held, and what was reserved.
  void CheckHeld(const Sequence& s, const CachedSequence& cache) {
    const std::size_t filled = (s.length + BlockTokens() - 1) / BlockTokens();
    std::uint64_t held = 0;
    std::uint64_t shared = 0;
    for (std::size_t g = 0; g < seen_.size(); ++g) {
      const BlockTable& table = cache.tables()[g];
      std::uint64_t needed = 0;
      for (std::size_t b = 0; b < filled; ++b) {
        const bool needs = Needs(g, b, s.length);
        needed += needs ? 1 : 0;
        Expect(!needs || table.holds(b), "a block that is needed but not held");
        Expect(needs || !table.holds(b), "a block that is held but not needed");
        if (table.holds(b) && References(table.blocks()[b]) > 1) shared += BlockBytes(g);
      }
      held += table.held_blocks() * BlockBytes(g);
      Expect(table.held_blocks() == needed + cache.entries() - filled, "blocks held");
      const Seen& seen = seen_[g];
      if (seen.window == 0 && seen.tail == 0) continue;
      // Flat: the window or tail, wherever its ends lie in blocks, and the sinks.
      const std::uint64_t reach = seen.tail != 0 ? seen.tail : seen.window;
      Expect(needed <= (reach + BlockTokens() - 1) / BlockTokens() + 1 +
                           (seen.sinks + BlockTokens() - 1) / BlockTokens(),
             "blocks held for a window");
    }
    const std::size_t empty = cache.entries() * BlockTokens() - s.length;
    const SequenceReport report = manager_->report(Id(s));
    Expect(report.held_bytes == held && report.shared_bytes == shared, "report of bytes held");
    Expect(report.waste_bytes == empty * geometry_.block_bytes() / BlockTokens(), "waste");
    if (cache.entries() == filled) {
      Expect(geometry_.HeldBytes(s.length) == held, "bytes held are those computed");
    }
    std::uint64_t by_layers = 0;
    for (std::size_t l = 0; l < geometry_.layers(); ++l) by_layers += cache.held_bytes(l);
    Expect(by_layers == held, "bytes held by layers");
  }

  // Whatever is indexed is complete and right, also where nobody needs it now.
  void CheckIndexed() {
    ForEachNode([&](std::uint32_t id, const auto& node) {
      if (!problem_.empty()) return;
      const Tokens prefix = PrefixOf(id);
      const std::vector<std::uint32_t> stamps = Stamps(prefix);
      const std::size_t begin = prefix.size() - BlockTokens();
      Expect(prefix.size() <= options_.max_indexed_tokens, "indexed beyond the bound");
      for (const CachePart& part : geometry_.all_parts()) {
        if (!part.group) continue;
        const std::byte* block = Readable(node.blocks[part.group->index()]);
        const std::byte* tail =
            part.tail_group ? Readable(node.blocks[part.tail_group->index()]) : nullptr;
        for (std::size_t slot = 0; slot < BlockTokens(); ++slot) {
          const std::uint32_t stamp = stamps[begin + slot];
          Expect(block == nullptr || bytes_.Holds(part, SlotKind::kStored, block, slot, stamp),
                 "indexed contents");
          Expect(tail == nullptr || bytes_.Holds(part, SlotKind::kTail, tail, slot, stamp),
                 "indexed tail");
          if (block == nullptr || !part.tail_group) continue;
          const std::size_t group = part.policy.group;
          const std::uint32_t last = stamps[begin + slot / group * group + group - 1];
          Expect(bytes_.Holds(part, SlotKind::kRounded, block, slot, last), "indexed rounded");
        }
      }
    });
  }
  // Null if there is none. The bytes of idle blocks are poisoned under AddressSanitizer.
  const std::byte* Readable(std::optional<BlockId> block) {
    if (!block) return nullptr;
#ifdef __SANITIZE_ADDRESS__
    if (!IsLive(*block)) return nullptr;
#endif
    return CacheTestPeer::blocks(CacheTestPeer::pool(*manager_))[block->index()].data;
  }

  // Every count of the pool, from the tables and the index.
  void CheckAccounts() {
    std::map<BlockId, std::uint64_t> references;
    std::map<BlockId, std::uint64_t> bytes_of;
    std::map<BlockId, std::size_t> filled;  // Slots.
    for (const Sequence& s : sequences_) {
      const CachedSequence& cache = std::as_const(*manager_).cache(Id(s));
      for (const BlockTable& table : cache.tables()) {
        for (std::size_t b = 0; b < table.entries(); ++b) {
          if (!table.holds(b)) continue;
          const BlockId id = table.blocks()[b];
          ++references[id];
          bytes_of[id] = BlockBytes(table.group().index());
          const std::size_t begin = b * BlockTokens();
          const std::size_t ours = s.length > begin ? std::min(s.length - begin, BlockTokens()) : 0;
          filled[id] = std::max(filled[id], ours);
        }
      }
    }
    std::uint64_t idle_bytes = 0;
    ForEachNode([&](std::uint32_t, const auto& node) {
      for (std::size_t g = 0; g < node.blocks.size(); ++g) {
        if (!node.blocks[g]) continue;
        if (references.contains(*node.blocks[g])) {
          filled[*node.blocks[g]] = BlockTokens();
        } else {
          idle_bytes += BlockBytes(g);
        }
      }
    });
    BlockPoolStats sum;
    std::uint64_t waste = 0;
    for (const auto& [id, count] : references) {
      const std::uint64_t bytes = bytes_of[id];
      sum.live_bytes += bytes;
      sum.referenced_bytes += count * bytes;
      if (count > 1) sum.shared_bytes += bytes;
      waste += (BlockTokens() - filled[id]) * bytes / BlockTokens();
      Expect(References(id) == count, "references of a block");
    }
    const ManagerReport report = manager_->report();
    Expect(report.pool.live_blocks == references.size(), "live blocks");
    Expect(report.pool.live_bytes == sum.live_bytes, "live bytes");
    Expect(report.pool.shared_bytes == sum.shared_bytes, "shared bytes");
    Expect(report.pool.referenced_bytes == sum.referenced_bytes, "referenced bytes");
    Expect(report.pool.idle_bytes == idle_bytes, "idle bytes");
    Expect(idle_bytes <= options_.max_idle_bytes, "more idle bytes than allowed");
    Expect(report.pool.storage_bytes() <= options_.budget_bytes, "budget");
    Expect(report.waste_bytes == waste, "waste of all");
  }

  const CacheGeometry geometry_;
  const SlotBytes bytes_;
  const GroupOracleOptions options_;
  std::unique_ptr<SequenceManager> manager_;
  std::vector<Sequence> sequences_;
  std::vector<Seen> seen_;  // By group.
  std::uint64_t shortened_ = 0;
  std::uint64_t partial_hits_ = 0;
  std::string problem_;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_GROUP_TEST_ORACLE_H_
