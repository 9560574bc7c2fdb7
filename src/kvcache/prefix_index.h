// Finds blocks by the tokens they stand for: what lets a prompt start from K and V already
// computed.
#ifndef KVASIR_KVCACHE_PREFIX_INDEX_H_
#define KVASIR_KVCACHE_PREFIX_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/token_id.h"
#include "kvcache/block_pool.h"
#include "kvcache/chain_hash.h"
#include "kvcache/ids.h"
#include "kvcache/prompt_log_probs.h"

namespace kvasir::kvcache {

struct PrefixIndexOptions {
  base::Hash128 fingerprint = {};  // Fingerprint(): what else the contents depend on.
  // Most bytes of blocks kept that nobody uses; beyond it the least recently used go at once.
  std::uint64_t max_idle_bytes = std::numeric_limits<std::uint64_t>::max();
  ChainHashFunction hash = ChainHash;  // Tests force collisions.
};

// Blocks of the same positions, one a cache group; null where a group has or needs none.
using GroupBlocks = std::vector<std::optional<BlockId>>;  // [groups]

// A node as those see it who look at the cache.
struct PrefixNodeReport {
  PrefixNodeId id;
  std::optional<PrefixNodeId> parent;
  GroupBlocks blocks;
  std::uint64_t hits = 0;  // CountHit
};

// The longest cached prefix of some tokens.
struct PrefixMatch {
  // What a sequence of this length must hold: of each group the blocks of positions [0, length), in
  // order; null where no later query sees them. [groups][blocks]
  std::vector<std::vector<std::optional<BlockId>>> blocks;
  std::vector<PrefixNodeId> nodes;  // [blocks]; the last one may hold more than is matched.
  std::size_t length = 0;           // May end inside the last block.
};

struct PrefixIndexStats {
  std::uint64_t nodes = 0;           // Pieces of block_tokens positions indexed now.
  std::uint64_t inserted = 0;        // Since the start, as all that follow.
  std::uint64_t evicted = 0;         // Because storage was needed, or max_idle_bytes exceeded.
  std::uint64_t collisions = 0;      // Equal hashes of different contents, seen and not believed.
  std::uint64_t log_prob_bytes = 0;  // Held now.
};

// A tree of complete blocks: a path from a root is a prefix. A node stands for block_tokens tokens
// after those of its parent, and keeps a block of every cache group that had one when the node was
// completed. A root belongs to a tenant; tenants never see each other's blocks. A node is named by
// the chained hash of its prefix; on a hit, parent, tenant and tokens are compared as well, so by
// induction the whole prefix is, and a collision cannot lie: it is counted and is a miss.
//
// The index owns no reference. It keeps blocks (block_pool.h): those that nobody references stay
// findable until their storage is needed. They go least recently used first: of a group that keeps
// all positions with their whole node, leaves only; of one that does not (a window, a tail) each
// block by itself, since a text can go on without those that have left its window.
//
// Owner: whoever owns the pool, which must outlive it. Neither copied nor moved. Thread-compatible
// together with the pool and its sequences. Finding costs one hash lookup a block and one search
// among sorted siblings; inserting and each change of use O(log nodes).
//
// Requires of every holder: whoever references an indexed block of a group that keeps all positions
// references that of its parent as well, and whoever counts on a path of nodes pins its end.
//
// Invariants:
//   1. A node's blocks are kept, are no other node's, and hold block_tokens tokens. A node without
//      one has children or a pin.
//   2. A node's hash is that of its parent's (or root's) hash and its tokens, and finds the node;
//      siblings differ in tokens.
//   3. In groups that keep all, a live block's parent is live: so every idle block can be given up,
//      leaves first.
//   4. Counts of children and live blocks equal a recount; a childless node without pin or live
//      block is listed for eviction by the time it was last used, idle blocks of other groups by
//      the time they were; nothing else is. With groups that keep all only, a parent was used no
//      earlier than its child.
//   5. Idle blocks are the pool's, at most max_idle_bytes.
class PrefixIndex : private BlockKeeper {
 public:
  PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options);
  ~PrefixIndex() override;
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // The longest cached prefix of tokens, along the nodes that begin most like them, at which every
  // group finds what it needs; takes no reference, so it holds until the pool or the index next
  // changes.
  PrefixMatch Find(std::uint64_t tenant_salt, std::span<const TokenId> tokens);

  // Makes complete, live blocks findable: they hold these tokens after those of parent (null: at
  // the start of a text). If an equal node is there already, it is returned instead; it takes the
  // blocks of groups of which it has none, and the caller should use its others. Null if the hash
  // collides: such blocks are not indexed. blocks: [groups]; all may be null for a caller that pins
  // the node at once.
  std::optional<PrefixNodeId> Insert(std::uint64_t tenant_salt, std::optional<PrefixNodeId> parent,
                                     std::span<const TokenId> tokens,
                                     std::span<const std::optional<BlockId>> blocks);
  // While it is pinned, a node and the path to it stay. As often unpinned as pinned, before the
  // blocks are released.
  void Pin(PrefixNodeId id);
  void Unpin(PrefixNodeId id);
  // The name the block would have: for planners that must not compute one block twice.
  base::Hash128 HashOf(std::uint64_t tenant_salt, std::optional<PrefixNodeId> parent,
                       std::span<const TokenId> tokens) const;

  std::optional<PrefixNodeId> NodeOf(BlockId block) const;
  std::optional<BlockId> block(PrefixNodeId id, CacheGroupId group = CacheGroupId(0)) const {
    return At(id).blocks[group.index()];
  }
  std::span<const TokenId> tokens(PrefixNodeId id) const { return At(id).tokens; }
  base::Hash128 HashOf(PrefixNodeId id) const { return At(id).hash; }
  std::optional<PrefixNodeId> ParentOf(PrefixNodeId id) const { return At(id).parent; }

  // Another text begins with the node: how often is told, and changes nothing.
  void CountHit(PrefixNodeId id) { ++At(id).hits; }
  std::uint64_t hits(PrefixNodeId id) const { return At(id).hits; }
  // All that a tenant can find, in no order. Linear in the nodes of all.
  std::vector<PrefixNodeReport> Report(std::uint64_t tenant_salt) const;

  // The log-probabilities kept for a slot of a block, or null. Requires slot < block_tokens.
  const PromptLogProbs* LogProbs(PrefixNodeId id, std::size_t slot) const;
  void KeepLogProbs(PrefixNodeId id, std::size_t slot, PromptLogProbs log_probs);

  // Forgets every idle block; its storage becomes free.
  void EvictIdle();

  PrefixIndexStats stats() const;
  // Aborts if an invariant does not hold. O(nodes · (block_tokens + log nodes)).
  void CheckInvariants() const;

 private:
  friend struct CacheTestPeer;  // Breaks invariants, to see them caught.

  struct Node {
    base::Hash128 hash;
    std::uint64_t tenant_salt;
    std::optional<PrefixNodeId> parent;
    GroupBlocks blocks;
    std::vector<TokenId> tokens;  // [block_tokens]
    std::uint32_t live = 0;       // Of its blocks.
    std::uint32_t pins = 0;
    std::uint32_t children = 0;
    std::uint64_t hits = 0;
    std::uint64_t last_use = 0;          // Tick at which nobody used it any more.
    std::vector<std::uint64_t> idle_at;  // [groups]: tick at which the block became idle
    std::map<std::size_t, PromptLogProbs> log_probs = {};  // By slot.

    bool used() const { return live > 0 || pins > 0; }
    bool evictable() const { return !used() && children == 0; }
    bool holds_nothing() const {
      return std::ranges::none_of(blocks, [](const auto& block) { return block.has_value(); });
    }
  };
  // Siblings side by side, in the order of their tokens; the span is that of the node.
  struct SiblingKey {
    std::uint64_t tenant_salt;
    std::uint64_t parent;  // Index + 1; 0: a root.
    std::span<const TokenId> tokens;
  };
  struct SiblingOrder {
    bool operator()(const SiblingKey& a, const SiblingKey& b) const;
  };
  struct HashBits {
    std::size_t operator()(const base::Hash128& hash) const {
      return static_cast<std::size_t>(hash.low);
    }
  };
  using Siblings = std::map<SiblingKey, PrefixNodeId, SiblingOrder>;

  // BlockKeeper.
  void OnIdle(BlockId id) override;
  void OnLive(BlockId id) override;
  void GiveUpIdle() override;
  void GiveUp(BlockId id) override;

  const Node& At(PrefixNodeId id) const;
  Node& At(PrefixNodeId id);
  static SiblingKey KeyOf(std::uint64_t tenant_salt, std::optional<PrefixNodeId> parent,
                          std::span<const TokenId> tokens);
  // The node of exactly this block, or null. Sets *collided if another one has its hash.
  std::optional<PrefixNodeId> FindExactly(const base::Hash128& hash, const SiblingKey& key,
                                          bool* collided) const;
  // The child of parent that begins most like tokens, and how many begin alike.
  std::pair<std::optional<PrefixNodeId>, std::size_t> FindPartly(const SiblingKey& key) const;
  bool KeepsAll(std::size_t group) const {
    return pool_.geometry().groups()[group].retention.KeepsAll();
  }
  // The longest length up to that of these nodes at which a sequence finds all it must hold.
  std::size_t UsableLength(std::span<const PrefixNodeId> nodes, std::size_t matched) const;
  void Attach(PrefixNodeId id, std::size_t group, BlockId block);
  // Gives one block of a node up, and the node if nothing is left of it.
  void Detach(PrefixNodeId id, std::size_t group);
  void ForgetDescendants(PrefixNodeId id);
  void Forget(PrefixNodeId leaf);  // Without children; its parents too, if nothing is left of them.
  void LimitIdle();

  BlockPool& pool_;
  const PrefixIndexOptions options_;
  std::vector<std::optional<Node>> nodes_;  // By id.
  std::vector<PrefixNodeId> unused_;        // Ids without a node.
  std::vector<std::optional<PrefixNodeId>> node_of_block_;
  std::unordered_map<base::Hash128, PrefixNodeId, HashBits> by_hash_;
  Siblings siblings_;
  std::set<std::pair<std::uint64_t, PrefixNodeId>> evictable_;  // (last_use, leaf)
  // Idle blocks of groups that do not keep all: (idle_at, node, group)
  std::set<std::tuple<std::uint64_t, PrefixNodeId, std::size_t>> loose_;
  std::uint64_t tick_ = 0;
  PrefixIndexStats stats_;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_PREFIX_INDEX_H_
