// Finds blocks by the tokens they stand for: what lets a prompt start from K and V already
// computed.
#ifndef KVASIR_KVCACHE_PREFIX_INDEX_H_
#define KVASIR_KVCACHE_PREFIX_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
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
  // Most blocks kept that nobody uses; beyond it the least recently used goes at once.
  std::uint64_t max_idle_blocks = std::numeric_limits<std::uint64_t>::max();
  ChainHashFunction hash = ChainHash;  // Tests force collisions.
};

// The longest cached prefix of some tokens.
struct PrefixMatch {
  std::vector<BlockId> blocks;  // Those of positions [0, length), in order.
  std::size_t length = 0;       // May end inside the last block.
};

struct PrefixIndexStats {
  std::uint64_t nodes = 0;           // Blocks indexed now, live or idle.
  std::uint64_t inserted = 0;        // Since the start, as all that follow.
  std::uint64_t evicted = 0;         // Because storage was needed, or max_idle_blocks exceeded.
  std::uint64_t collisions = 0;      // Equal hashes of different contents, seen and not believed.
  std::uint64_t log_prob_bytes = 0;  // Held now.
};

// A tree of complete blocks: a path from a root is a prefix, and every prefix of it is cached too.
// A root belongs to a tenant; tenants never see each other's blocks. A block is named by the
// chained hash of its prefix; on a hit, parent, tenant and tokens are compared as well, so by
// induction the whole prefix is, and a collision cannot lie: it is counted and is a miss.
//
// The index owns no reference. It keeps blocks (block_pool.h): those that nobody references stay
// findable until their storage is needed, and go in the order least recently used leaf first.
//
// Owner: whoever owns the pool, which must outlive it. Neither copied nor moved. Thread-compatible
// together with the pool and its sequences. Finding costs one hash lookup a block and one search
// among sorted siblings; inserting and each change of use O(log nodes).
//
// Requires of every holder: whoever references an indexed block references its parent as well
// (a block table that holds a path from the root does).
//
// Invariants:
//   1. A node's block is kept, is no other node's, and holds block_tokens tokens.
//   2. A node's hash is that of its parent's (or root's) hash and its tokens, and finds the node;
//      siblings differ in tokens.
//   3. A live block's parent is live: so every idle block can be given up, leaves first.
//   4. Child counts equal a recount; a childless idle node is listed for eviction by the time it
//      was last used, and nothing else is. A parent was used no earlier than its child.
//   5. Idle nodes are the pool's idle blocks, at most max_idle_blocks.
class PrefixIndex : private BlockKeeper {
 public:
  PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options);
  ~PrefixIndex() override;
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // The longest cached prefix of tokens; takes no reference, so it holds until the pool or the
  // index next changes.
  PrefixMatch Find(std::uint64_t tenant_salt, std::span<const TokenId> tokens);

  // Makes a complete, live block findable: it holds these tokens after those of parent (null: at
  // the start of a text), whose block must be live. If an equal block is indexed already, its node
  // is returned instead, and the caller should use that block. Null if the hash collides: such a
  // block is not indexed.
  std::optional<PrefixNodeId> Insert(std::uint64_t tenant_salt, std::optional<PrefixNodeId> parent,
                                     std::span<const TokenId> tokens, BlockId block);
  // The name the block would have: for planners that must not compute one block twice.
  base::Hash128 HashOf(std::uint64_t tenant_salt, std::optional<PrefixNodeId> parent,
                       std::span<const TokenId> tokens) const;

  std::optional<PrefixNodeId> NodeOf(BlockId block) const;
  BlockId block(PrefixNodeId id) const { return At(id).block; }
  std::span<const TokenId> tokens(PrefixNodeId id) const { return At(id).tokens; }
  std::optional<PrefixNodeId> ParentOf(PrefixNodeId id) const { return At(id).parent; }

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
    BlockId block;
    std::vector<TokenId> tokens;  // [block_tokens]
    bool idle = false;
    std::uint64_t last_use = 0;  // Tick at which it became idle.
    std::uint32_t children = 0;
    std::map<std::size_t, PromptLogProbs> log_probs = {};  // By slot.
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
  void ForgetDescendants(PrefixNodeId id);
  void Forget(PrefixNodeId id);  // A node without children.

  BlockPool& pool_;
  const PrefixIndexOptions options_;
  std::vector<std::optional<Node>> nodes_;  // By id.
  std::vector<PrefixNodeId> unused_;        // Ids without a node.
  std::vector<std::optional<PrefixNodeId>> node_of_block_;
  std::unordered_map<base::Hash128, PrefixNodeId, HashBits> by_hash_;
  Siblings siblings_;
  std::set<std::pair<std::uint64_t, PrefixNodeId>> evictable_;  // (last_use, leaf)
  std::uint64_t tick_ = 0;
  PrefixIndexStats stats_;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_PREFIX_INDEX_H_
