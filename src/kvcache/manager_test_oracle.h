// For tests and the fuzz target: a SequenceManager beside an obvious, slow model of it. Every
// operation is done to both. What a position's K and V must be is a function of the tokens up to
// it; which blocks are shared, found, evicted or refused is predicted block by block.
#ifndef KVASIR_KVCACHE_MANAGER_TEST_ORACLE_H_
#define KVASIR_KVCACHE_MANAGER_TEST_ORACLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "kvcache/sequence_manager.h"

namespace kvasir::kvcache {

struct ManagerOracleOptions {
  std::uint64_t capacity_blocks = 4;
  std::size_t sequences = 3;
  std::optional<std::uint64_t> placement_seed = std::nullopt;
  base::Env* swap_env = nullptr;  // Null: preemption always drops.
  std::string swap_directory = {};
  bool swap_may_fail = false;  // A fault-injecting Env: a swapped sequence may come back shorter.
  bool check_contents = true;
};

// Single-threaded. Sequences are named by index. The first difference is told by problem().
class ManagerOracle {
 public:
  using Tokens = std::vector<base::TokenId>;

  ManagerOracle(const CacheGeometry& geometry, const ManagerOracleOptions& options)
      : geometry_(geometry), options_(options), sequences_(options.sequences) {
    SequenceManagerOptions wanted;
    wanted.pool.budget_bytes = options.capacity_blocks * geometry.block_bytes();
    wanted.pool.placement_seed = options.placement_seed;
    wanted.swap_env = options.swap_env;
    wanted.swap_directory = options.swap_directory;
    manager_ = SequenceManager::Make(geometry, wanted).value();
    for (std::size_t i = 0; i < options.sequences; ++i) {
      sequences_[i].id = manager_->Create().index();
    }
  }

  std::size_t size() const { return sequences_.size(); }
  std::size_t length(std::size_t i) const { return sequences_[i].length; }
  std::size_t known(std::size_t i) const { return sequences_[i].tokens.size(); }
  bool preempted(std::size_t i) const { return sequences_[i].preempted; }
  const std::string& problem() const { return problem_; }
  SequenceManager& manager() { return *manager_; }

  // Computes what is pending and then these tokens; an empty sequence first takes the longest
  // cached prefix. False if the model says the budget does not hold it.
  bool Append(std::size_t i, const Tokens& more) {
    Sequence& s = sequences_[i];
    if (s.preempted) return false;
    Tokens text = s.tokens;
    text.insert(text.end(), more.begin(), more.end());
    if (s.labels.empty()) TakePrefix(s, text);
    const Tokens fresh(text.begin() + static_cast<std::ptrdiff_t>(s.length), text.end());
    if (fresh.empty()) return true;
    if (!Reserve(s, fresh.size())) return false;
    const std::size_t before = s.length;
    s.tokens = text;
    for (std::size_t p = before; p < text.size(); ++p) Store(s, p);
    Cache(s).Advance(fresh.size());
    manager_->Commit(Id(s), fresh);
    s.length = text.size();
    IndexBlocks(s, before / BlockTokens());
    return true;
  }

  // A step that fails: reserves, stores rubbish, does not advance.
  bool FailedStep(std::size_t i, std::size_t count) {
    Sequence& s = sequences_[i];
    if (s.preempted || !Reserve(s, count)) return false;
    const kernels::KvView view = Cache(s).View(0);
    for (std::size_t p = s.length; p < s.length + count; ++p) KAt(view, p, 0, 0) = 1e30f;
    return true;
  }

  void Truncate(std::size_t i, std::size_t length) {
    Sequence& s = sequences_[i];
    if (s.preempted || length > s.length) return;
    manager_->Truncate(Id(s), length);
    s.tokens.resize(length);
    s.length = length;
    Release(s, (length + BlockTokens() - 1) / BlockTokens());
  }

  void Finish(std::size_t i) {
    Sequence& s = sequences_[i];
    manager_->Finish(Id(s));
    Release(s, 0);
    s = Sequence();
    s.id = manager_->Create().index();
  }

  // `to` is replaced. Requires from != to.
  void Fork(std::size_t from, std::size_t to) {
    if (sequences_[from].preempted) return;
    manager_->Finish(Id(sequences_[to]));
    Release(sequences_[to], 0);
    const Sequence& source = sequences_[from];
    Sequence twin = source;
    twin.id = manager_->Fork(Id(source)).index();
    twin.labels.resize((source.length + BlockTokens() - 1) / BlockTokens());
    sequences_[to] = twin;
  }

  void Preempt(std::size_t i, Preemption how) {
    Sequence& s = sequences_[i];
    if (s.preempted) return;
    const Preemption done = manager_->Preempt(Id(s), how);
    const bool can_swap = how == Preemption::kSwap && options_.swap_env != nullptr && s.length > 0;
    Expect(done == Preemption::kDrop || can_swap, "a swap from nothing");
    if (!options_.swap_may_fail) {
      Expect((done == Preemption::kSwap) == can_swap, "a swap that was not done");
    }
    s.swapped_length = done == Preemption::kSwap ? s.length : 0;
    s.preempted = true;
    s.length = 0;
    Release(s, 0);
  }

  // False if the model says that the budget does not hold what was swapped.
  bool Resume(std::size_t i) {
    Sequence& s = sequences_[i];
    if (!s.preempted) return true;
    const std::size_t swapped = s.swapped_length;
    const std::uint64_t faults = manager_->report().swap_read_faults;
    const base::Result<std::size_t> resumed = manager_->Resume(Id(s));
    bool read = swapped > 0;
    if (swapped > 0) {
      const Tokens text(s.tokens.begin(), s.tokens.begin() + static_cast<std::ptrdiff_t>(swapped));
      Match match = FindPrefix(text);
      match.labels.resize(match.length / BlockTokens());
      Share(s, match.labels);
      const std::size_t found = match.labels.size() * BlockTokens();
      s.length = found;
      const std::uint64_t missing = (swapped - found + BlockTokens() - 1) / BlockTokens();
      const bool fits = Live() + missing <= options_.capacity_blocks;
      Expect(resumed.has_value() == fits, "resume fits or not");
      if (!fits) {
        Expect(resumed.has_value() || resumed.error().code == base::ErrorCode::kExhausted, "code");
        s.length = 0;
        Release(s, 0);
        return false;
      }
      for (std::uint64_t n = 0; n < missing; ++n) s.labels.push_back(Allocate());
      s.swapped_length = 0;
      if (manager_->report().swap_read_faults > faults) {
        Expect(options_.swap_may_fail, "a swap file not believed");
        Release(s, 0);
        read = false;
      } else {
        s.length = swapped;
        IndexBlocks(s, found / BlockTokens());
      }
    }
    s.preempted = false;
    if (!read) {
      s.length = 0;
      TakeFound(s, s.tokens);
    }
    Expect(resumed.has_value() && resumed.value() == s.length, "resumed length");
    return true;
  }

  // Compares everything that can be seen, and checks the invariants.
  void Check() {
    manager_->CheckInvariants();
    for (std::size_t i = 0; i < sequences_.size(); ++i) CheckSequence(sequences_[i]);
    CheckBlocks();
  }

  // Everything the future depends on, whatever the names of sequences and blocks. Two worlds of one
  // state behave alike.
  std::string State() const {
    std::vector<std::size_t> order(sequences_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::string least;
    do {
      std::string state = StateIn(order);
      if (least.empty() || state < least) least = std::move(state);
    } while (std::next_permutation(order.begin(), order.end()));
    return least;
  }

 private:
  using Label = std::uint64_t;
  struct Sequence {
    std::uint32_t id = 0;
    Tokens tokens = {};
    std::size_t length = 0;
    std::vector<Label> labels = {};
    bool preempted = false;
    std::size_t swapped_length = 0;
  };
  struct Indexed {
    Tokens prefix;  // All tokens up to the block's end.
    std::uint64_t last_use = 0;
  };
  struct Match {
    std::vector<Label> labels;
    std::size_t length = 0;
  };

  std::size_t BlockTokens() const { return geometry_.block_tokens(); }
  static SequenceId Id(const Sequence& s) { return SequenceId(s.id); }
  CachedSequence& Cache(const Sequence& s) { return manager_->cache(Id(s)); }
  void Expect(bool holds, const char* what) {
    if (!holds && problem_.empty()) problem_ = what;
  }

  // The elements of K and V, found with nothing but the layout's documentation.
  static float& KAt(const kernels::KvView& view, std::size_t p, std::size_t head, std::size_t d) {
    const std::size_t slot = p % view.block_tokens;
    auto* tiles = reinterpret_cast<float*>(view.blocks[p / view.block_tokens] + view.k_offset);
    return tiles[head * view.block_tokens * view.head_dim + slot / 16 * view.head_dim * 16 +
                 d * 16 + slot % 16];
  }
  static float& VAt(const kernels::KvView& view, std::size_t p, std::size_t head, std::size_t d) {
    const std::size_t slot = p % view.block_tokens;
    auto* rows = reinterpret_cast<float*>(view.blocks[p / view.block_tokens] + view.v_offset);
    return rows[head * view.block_tokens * view.head_dim + slot * view.head_dim + d];
  }
  // What the tokens up to and with each position stand for. [tokens]
  static std::vector<std::uint32_t> Stamps(const Tokens& tokens) {
    std::vector<std::uint32_t> stamps;
    std::uint32_t stamp = 17;
    for (const base::TokenId token : tokens) {
      stamp = (stamp ^ (token + 0x9E3779B9u)) * 2654435761u;
      stamp ^= stamp >> 15;
      stamps.push_back(stamp);
    }
    return stamps;
  }
  static float ValueOf(std::uint32_t stamp, std::size_t layer, std::size_t head, std::size_t d) {
    return static_cast<float>(stamp % (1u << 18)) + static_cast<float>(layer) / 8 +
           static_cast<float>(head) / 16 + static_cast<float>(d) / 64;
  }
  template <typename Visit>
  void ForEachElement(const Visit& visit) const {
    for (std::size_t layer = 0; layer < geometry_.layers(); ++layer) {
      for (std::size_t head = 0; head < geometry_.kv_heads(); ++head) {
        for (std::size_t d = 0; d < geometry_.head_dim(); ++d) visit(layer, head, d);
      }
    }
  }
  void Store(const Sequence& s, std::size_t p) {
    const std::uint32_t stamp = Stamps(s.tokens)[p];
    ForEachElement([&](std::size_t layer, std::size_t head, std::size_t d) {
      const kernels::KvView view = Cache(s).View(layer);
      KAt(view, p, head, d) = ValueOf(stamp, layer, head, d);
      VAt(view, p, head, d) = -ValueOf(stamp, layer, head, d);
    });
  }

  std::uint64_t References(Label label) const {
    std::uint64_t count = 0;
    for (const Sequence& s : sequences_) {
      count += static_cast<std::uint64_t>(std::ranges::count(s.labels, label));
    }
    return count;
  }
  std::uint64_t Live() const {
    std::vector<Label> labels;
    for (const Sequence& s : sequences_) {
      labels.insert(labels.end(), s.labels.begin(), s.labels.end());
    }
    std::ranges::sort(labels);
    return static_cast<std::uint64_t>(std::unique(labels.begin(), labels.end()) - labels.begin());
  }
  std::uint64_t Idle() const {
    std::uint64_t count = 0;
    for (const auto& [label, indexed] : index_) count += References(label) == 0 ? 1 : 0;
    return count;
  }
  static bool Extends(const Tokens& longer, const Tokens& prefix) {
    return longer.size() > prefix.size() &&
           std::equal(prefix.begin(), prefix.end(), longer.begin());
  }
  // A block for a table. One not yet in a table is counted by unplaced_.
  Label Allocate() {
    if (Live() + unplaced_ + Idle() == options_.capacity_blocks) EvictOne();
    return next_label_++;
  }
  void EvictOne() {
    std::optional<Label> oldest;
    for (const auto& [label, indexed] : index_) {
      if (References(label) > 0) continue;
      const bool leaf = std::ranges::none_of(
          index_, [&](const auto& other) { return Extends(other.second.prefix, indexed.prefix); });
      if (leaf && (!oldest || indexed.last_use < index_.at(*oldest).last_use)) oldest = label;
    }
    Expect(oldest.has_value(), "nothing to evict");
    if (oldest) index_.erase(*oldest);
  }

  // Drops the table's entries from `kept` on, the last first.
  void Release(Sequence& s, std::size_t kept) {
    while (s.labels.size() > kept) {
      const Label label = s.labels.back();
      s.labels.pop_back();
      Released(label);
    }
  }
  void Released(Label label) {
    const auto found = index_.find(label);
    if (found != index_.end() && References(label) == 0) found->second.last_use = ++tick_;
  }
  static void Share(Sequence& s, const std::vector<Label>& labels) { s.labels = labels; }

  // The longest prefix of text among all indexed blocks. Of equally good siblings: the first in
  // order at or after the text, else the last before it.
  Match FindPrefix(const Tokens& text) const {
    Match match;
    while (true) {
      const Tokens path(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(match.length));
      std::optional<Label> best;
      std::size_t most = 0;
      bool best_is_after = false;
      Tokens best_prefix;
      for (const auto& [label, indexed] : index_) {
        const Tokens& prefix = indexed.prefix;
        if (prefix.size() != path.size() + BlockTokens() || !Extends(prefix, path)) continue;
        std::size_t same = 0;
        while (match.length + same < std::min(text.size(), prefix.size()) &&
               text[match.length + same] == prefix[match.length + same]) {
          ++same;
        }
        const bool after = !std::ranges::lexicographical_compare(prefix, text);
        const bool nearer = after != best_is_after ? after : (prefix < best_prefix) == after;
        if (same > most || (same == most && same > 0 && nearer)) {
          best = label;
          most = same;
          best_is_after = after;
          best_prefix = prefix;
        }
      }
      if (!best) return match;
      match.labels.push_back(*best);
      match.length += most;
      if (most < BlockTokens()) return match;
    }
  }
  void TakeFound(Sequence& s, const Tokens& text) {
    const Match match = FindPrefix(text);
    Share(s, match.labels);
    s.length = match.length;
    if (match.length > s.tokens.size()) {
      s.tokens.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(match.length));
    }
  }
  void TakePrefix(Sequence& s, const Tokens& text) {
    const std::size_t found = manager_->TakePrefix(Id(s), text);
    TakeFound(s, text);
    Expect(found == s.length, "length of the prefix found");
  }

  bool Reserve(Sequence& s, std::size_t count) {
    const std::size_t slots = s.labels.size() * BlockTokens();
    const std::size_t unused = slots - s.length;
    const std::uint64_t missing =
        count > unused ? (count - unused + BlockTokens() - 1) / BlockTokens() : 0;
    const std::size_t next = s.length / BlockTokens();
    const bool held = count > 0 && next < s.labels.size();
    const bool shared = held && References(s.labels[next]) > 1;
    const bool kept = held && index_.contains(s.labels[next]);
    const std::uint64_t live = Live();
    const bool fits = live + missing + (shared ? 1 : 0) <= options_.capacity_blocks;
    const base::Result<void> reserved = Cache(s).Reserve(count);
    Expect(reserved.has_value() == fits, "reserve fits or not");
    if (!fits || !reserved) return false;
    unplaced_ = 0;
    std::optional<Label> copy;
    if (shared || (kept && live + missing + 1 <= options_.capacity_blocks)) {
      copy = Allocate();
      unplaced_ = 1;
    } else if (kept) {
      const Tokens prefix = index_.at(s.labels[next]).prefix;
      std::erase_if(index_, [&](const auto& entry) {
        return entry.second.prefix == prefix || Extends(entry.second.prefix, prefix);
      });
    }
    for (std::uint64_t n = 0; n < missing; ++n) s.labels.push_back(Allocate());
    unplaced_ = 0;
    if (copy) {
      const Label old = std::exchange(s.labels[next], *copy);
      Released(old);
    }
    return true;
  }

  void IndexBlocks(Sequence& s, std::size_t first_block) {
    for (std::size_t b = first_block; (b + 1) * BlockTokens() <= s.length; ++b) {
      const Tokens prefix(s.tokens.begin(),
                          s.tokens.begin() + static_cast<std::ptrdiff_t>((b + 1) * BlockTokens()));
      const auto equal = std::ranges::find_if(
          index_, [&](const auto& entry) { return entry.second.prefix == prefix; });
      if (equal == index_.end()) {
        index_[s.labels[b]] = {prefix, 0};
      } else {
        s.labels[b] = equal->first;
      }
    }
  }

  void CheckSequence(const Sequence& s) {
    Expect(manager_->is_preempted(Id(s)) == s.preempted, "preempted");
    Expect(std::ranges::equal(manager_->tokens(Id(s)), s.tokens), "tokens");
    Expect(manager_->pending(Id(s)).size() == s.tokens.size() - s.length, "pending");
    const CachedSequence& cache = std::as_const(*manager_).cache(Id(s));
    Expect(cache.length() == s.length, "length");
    if (!options_.check_contents || !problem_.empty()) return;
    const std::vector<std::uint32_t> stamps = Stamps(s.tokens);
    ForEachElement([&](std::size_t layer, std::size_t head, std::size_t d) {
      const kernels::KvView view = cache.View(layer);
      for (std::size_t p = 0; p < s.length; ++p) {
        const float value = ValueOf(stamps[p], layer, head, d);
        Expect(KAt(view, p, head, d) == value && VAt(view, p, head, d) == -value, "contents");
      }
    });
  }

  // Tables against labels, one to one, and every count against both.
  void CheckBlocks() {
    std::map<Label, BlockId> id_of;
    std::map<BlockId, Label> label_of;
    std::uint64_t references = 0;
    std::map<Label, std::size_t> filled;
    for (const Sequence& s : sequences_) {
      const auto blocks = std::as_const(*manager_).cache(Id(s)).blocks();
      Expect(blocks.size() == s.labels.size(), "blocks held");
      for (std::size_t b = 0; b < std::min(blocks.size(), s.labels.size()); ++b) {
        Expect(id_of.emplace(s.labels[b], blocks[b]).first->second == blocks[b], "label to block");
        Expect(label_of.emplace(blocks[b], s.labels[b]).first->second == s.labels[b],
               "block to label");
        ++references;
        std::size_t& most = filled[s.labels[b]];
        const std::size_t begin = b * BlockTokens();
        most = std::max(most, index_.contains(s.labels[b]) ? BlockTokens()
                              : s.length > begin ? std::min(s.length - begin, BlockTokens())
                                                 : 0);
      }
    }
    std::uint64_t waste = 0;
    for (const auto& [label, slots] : filled) waste += BlockTokens() - slots;
    const ManagerReport report = manager_->report();
    Expect(report.pool.live_blocks == id_of.size(), "live blocks");
    Expect(report.pool.references == references, "references");
    Expect(report.pool.idle_blocks == Idle(), "idle blocks");
    Expect(report.index.nodes == index_.size(), "indexed blocks");
    Expect(report.waste_bytes == waste * geometry_.bytes_per_token(), "waste");
    for (const auto& [label, id] : id_of) {
      Expect(manager_->pool_references(id) == References(label), "references of a block");
    }
  }

  std::string StateIn(const std::vector<std::size_t>& order) const {
    std::string state;
    std::map<Label, std::uint64_t> name_of;  // By first mention.
    const auto number = [&](std::uint64_t n) { state += std::to_string(n) + ' '; };
    const auto letters = [&](const Tokens& tokens) {
      for (const base::TokenId token : tokens) state += static_cast<char>('a' + token % 26);
      state += ';';
    };
    for (const std::size_t i : order) {
      const Sequence& s = sequences_[i];
      letters(s.tokens);
      for (const std::size_t n : {s.length, std::size_t{s.preempted}, s.swapped_length}) number(n);
      for (const Label label : s.labels)
        number(name_of.emplace(label, name_of.size()).first->second);
    }
    std::map<std::uint64_t, Tokens> idle;  // In the order of use.
    std::map<Tokens, std::uint64_t> live;
    for (const auto& [label, indexed] : index_) {
      if (References(label) == 0) {
        idle.emplace(indexed.last_use, indexed.prefix);
      } else {
        live.emplace(indexed.prefix, name_of.at(label));
      }
    }
    for (const auto& [use, prefix] : idle) letters(prefix);
    for (const auto& [prefix, name] : live) {
      letters(prefix);
      number(name);
    }
    return state;
  }

  const CacheGeometry geometry_;
  const ManagerOracleOptions options_;
  std::unique_ptr<SequenceManager> manager_;
  std::vector<Sequence> sequences_;
  std::map<Label, Indexed> index_;
  Label next_label_ = 0;
  std::uint64_t unplaced_ = 0;  // Blocks taken, in no table yet.
  std::uint64_t tick_ = 0;
  std::string problem_;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_MANAGER_TEST_ORACLE_H_
