#include "kvcache/prefix_index.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace kvasir::kvcache {
namespace {

std::size_t CommonPrefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i < most && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

bool PrefixIndex::SiblingOrder::operator()(const SiblingKey& a, const SiblingKey& b) const {
  if (a.tenant_salt != b.tenant_salt) return a.tenant_salt < b.tenant_salt;
  if (a.parent != b.parent) return a.parent < b.parent;
  return std::ranges::lexicographical_compare(a.tokens, b.tokens);
}

PrefixIndex::PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options)
    : pool_(pool), options_(options) {
  pool_.SetKeeper(this);
}

PrefixIndex::~PrefixIndex() {
  for (const std::optional<Node>& node : nodes_) {
    if (!node) continue;
    for (const std::optional<BlockId>& block : node->blocks) {
      if (block) pool_.StopKeeping(*block);
    }
  }
  pool_.SetKeeper(nullptr);
}

const PrefixIndex::Node& PrefixIndex::At(PrefixNodeId id) const {
  KV_CHECK(id.index() < nodes_.size() && nodes_[id.index()].has_value());
  return *nodes_[id.index()];
}

PrefixIndex::Node& PrefixIndex::At(PrefixNodeId id) {
  return const_cast<Node&>(std::as_const(*this).At(id));
}

PrefixIndex::SiblingKey PrefixIndex::KeyOf(std::uint64_t tenant_salt,
                                           std::optional<PrefixNodeId> parent,
                                           std::span<const TokenId> tokens) {
  return {tenant_salt, parent ? std::uint64_t{parent->index()} + 1 : 0, tokens};
}

base::Hash128 PrefixIndex::HashOf(std::uint64_t tenant_salt, std::optional<PrefixNodeId> parent,
                                  std::span<const TokenId> tokens) const {
  return options_.hash(parent ? At(*parent).hash : RootHash(options_.fingerprint, tenant_salt),
                       tokens);
}

std::optional<PrefixNodeId> PrefixIndex::NodeOf(BlockId block) const {
  if (block.index() >= node_of_block_.size()) return std::nullopt;
  return node_of_block_[block.index()];
}

std::optional<PrefixNodeId> PrefixIndex::FindExactly(const base::Hash128& hash,
                                                     const SiblingKey& key, bool* collided) const {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) return std::nullopt;
  const Node& node = At(found->second);
  const SiblingKey its_key = KeyOf(node.tenant_salt, node.parent, node.tokens);
  if (its_key.tenant_salt == key.tenant_salt && its_key.parent == key.parent &&
      std::ranges::equal(its_key.tokens, key.tokens)) {
    return found->second;
  }
  *collided = true;
  return std::nullopt;
}

// Among sorted siblings the longest common beginning is that of a neighbour of the place where the
// tokens would stand.
std::pair<std::optional<PrefixNodeId>, std::size_t> PrefixIndex::FindPartly(
    const SiblingKey& key) const {
  std::pair<std::optional<PrefixNodeId>, std::size_t> best = {std::nullopt, 0};
  const auto consider = [&](Siblings::const_iterator it) {
    if (it->first.tenant_salt != key.tenant_salt || it->first.parent != key.parent) return;
    const std::size_t common = CommonPrefix(it->first.tokens, key.tokens);
    if (common > best.second) best = {it->second, common};
  };
  const auto next = siblings_.lower_bound(key);
  if (next != siblings_.end()) consider(next);
  if (next != siblings_.begin()) consider(std::prev(next));
  return best;
}

PrefixMatch PrefixIndex::Find(std::uint64_t tenant_salt, std::span<const TokenId> tokens) {
  const std::size_t block_tokens = pool_.geometry().block_tokens();
  PrefixMatch match;
  std::optional<PrefixNodeId> node;
  while (tokens.size() - match.length >= block_tokens) {
    const std::span<const TokenId> chunk = tokens.subspan(match.length, block_tokens);
    bool collided = false;
    const auto next =
        FindExactly(HashOf(tenant_salt, node, chunk), KeyOf(tenant_salt, node, chunk), &collided);
    if (collided) ++stats_.collisions;
    if (!next) break;
    node = next;
    match.nodes.push_back(*node);
    match.length += block_tokens;
  }
  const std::size_t rest = std::min(tokens.size() - match.length, block_tokens);
  if (rest > 0) {
    const auto [partly, common] =
        FindPartly(KeyOf(tenant_salt, node, tokens.subspan(match.length, rest)));
    if (partly) {
      match.nodes.push_back(*partly);
      match.length += common;
    }
  }
  match.length = UsableLength(match.nodes, match.length);
  match.nodes.resize(pool_.geometry().BlocksFor(match.length), PrefixNodeId(0));
  match.blocks.resize(pool_.geometry().groups().size());
  for (std::size_t group = 0; group < match.blocks.size(); ++group) {
    const Retention& keep = pool_.geometry().groups()[group].retention;
    for (std::size_t i = 0; i < match.nodes.size(); ++i) {
      const bool needed = keep.NeedsBlock(i, match.length, block_tokens);
      match.blocks[group].push_back(needed ? At(match.nodes[i]).blocks[group] : std::nullopt);
    }
  }
  return match;
}

// Inside a block no shorter length needs less, so after the length matched only block boundaries
// are tried.
std::size_t PrefixIndex::UsableLength(std::span<const PrefixNodeId> nodes,
                                      std::size_t matched) const {
  const CacheGeometry& geometry = pool_.geometry();
  if (geometry.KeepsAll()) return matched;
  const std::size_t block_tokens = geometry.block_tokens();
  // run[g][i]: how many blocks of the group are there one after the other, up to block i.
  std::vector<std::vector<std::size_t>> run(geometry.groups().size());
  for (std::size_t group = 0; group < run.size(); ++group) {
    std::size_t length = 0;
    for (const PrefixNodeId id : nodes) {
      length = At(id).blocks[group] ? length + 1 : 0;
      run[group].push_back(length);
    }
  }
  const auto usable = [&](std::size_t length) {
    const std::size_t blocks = geometry.BlocksFor(length);
    for (std::size_t group = 0; group < run.size(); ++group) {
      if (KeepsAll(group)) continue;  // Every node has a block of it.
      const Retention& keep = geometry.groups()[group].retention;
      const std::size_t sinks = std::min(blocks, geometry.BlocksFor(keep.sinks));
      if (sinks > 0 && run[group][sinks - 1] < sinks) return false;
      std::size_t needed = 0;
      while (needed < blocks && keep.NeedsBlock(blocks - 1 - needed, length, block_tokens)) {
        ++needed;
      }
      if (needed > 0 && run[group][blocks - 1] < needed) return false;
    }
    return true;
  };
  std::size_t length = matched;
  while (length > 0 && !usable(length)) length = (length - 1) / block_tokens * block_tokens;
  return length;
}

std::optional<PrefixNodeId> PrefixIndex::Insert(std::uint64_t tenant_salt,
                                                std::optional<PrefixNodeId> parent,
                                                std::span<const TokenId> tokens,
                                                std::span<const std::optional<BlockId>> blocks) {
  const std::size_t groups = pool_.geometry().groups().size();
  KV_CHECK(tokens.size() == pool_.geometry().block_tokens() && blocks.size() == groups);
  KV_CHECK(!parent || (At(*parent).used() && At(*parent).tenant_salt == tenant_salt));
  const base::Hash128 hash = HashOf(tenant_salt, parent, tokens);
  bool collided = false;
  std::optional<PrefixNodeId> id = FindExactly(hash, KeyOf(tenant_salt, parent, tokens), &collided);
  if (collided) {
    ++stats_.collisions;
    return std::nullopt;
  }
  if (!id) {
    if (unused_.empty()) {
      unused_.emplace_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.emplace_back();
    }
    id = unused_.back();
    unused_.pop_back();
    Node& node = nodes_[id->index()].emplace(Node{.hash = hash,
                                                  .tenant_salt = tenant_salt,
                                                  .parent = parent,
                                                  .blocks = GroupBlocks(groups),
                                                  .tokens = {tokens.begin(), tokens.end()},
                                                  .idle_at = std::vector<std::uint64_t>(groups)});
    if (parent) ++At(*parent).children;
    by_hash_.emplace(hash, *id);
    siblings_.emplace(KeyOf(tenant_salt, parent, node.tokens), *id);
    ++stats_.nodes;
    ++stats_.inserted;
  } else if (At(*id).evictable()) {
    // It takes a live block, or comes again below.
    evictable_.erase({At(*id).last_use, *id});
  }
  for (std::size_t group = 0; group < groups; ++group) {
    if (blocks[group] && !At(*id).blocks[group]) Attach(*id, group, *blocks[group]);
  }
  if (At(*id).evictable()) evictable_.emplace(At(*id).last_use, *id);
  return id;
}

void PrefixIndex::Attach(PrefixNodeId id, std::size_t group, BlockId block) {
  pool_.Keep(block);
  Node& node = At(id);
  node.blocks[group] = block;
  ++node.live;
  if (node_of_block_.size() <= block.index()) node_of_block_.resize(block.index() + 1);
  node_of_block_[block.index()] = id;
}

void PrefixIndex::Pin(PrefixNodeId id) {
  Node& node = At(id);
  if (node.evictable()) evictable_.erase({node.last_use, id});
  ++node.pins;
}

void PrefixIndex::Unpin(PrefixNodeId id) {
  Node& node = At(id);
  KV_CHECK(node.pins > 0);
  --node.pins;
  if (node.used()) return;
  node.last_use = ++tick_;
  if (node.children > 0) return;
  evictable_.emplace(node.last_use, id);
  if (node.holds_nothing()) Forget(id);
  LimitIdle();
}

const PromptLogProbs* PrefixIndex::LogProbs(PrefixNodeId id, std::size_t slot) const {
  KV_CHECK(slot < pool_.geometry().block_tokens());
  const auto& kept = At(id).log_probs;
  const auto found = kept.find(slot);
  return found == kept.end() ? nullptr : &found->second;
}

void PrefixIndex::KeepLogProbs(PrefixNodeId id, std::size_t slot, PromptLogProbs log_probs) {
  KV_CHECK(slot < pool_.geometry().block_tokens());
  KV_CHECK(log_probs.best.size() <= kKeptAlternatives);
  const auto [place, inserted] = At(id).log_probs.try_emplace(slot);
  if (!inserted) stats_.log_prob_bytes -= place->second.bytes();
  place->second = std::move(log_probs);
  stats_.log_prob_bytes += place->second.bytes();
}

void PrefixIndex::OnIdle(BlockId block) {
  const PrefixNodeId id = NodeOf(block).value();
  const std::size_t group = pool_.group(block).index();
  Node& node = At(id);
  --node.live;
  node.idle_at[group] = ++tick_;
  if (!KeepsAll(group)) loose_.emplace(tick_, id, group);
  if (!node.used()) {
    node.last_use = tick_;
    if (node.children == 0) evictable_.emplace(node.last_use, id);
  }
  LimitIdle();
}

// While a sequence gives its blocks up group by group, a node can have an idle block and a live
// one: then the release of that one, or of its pin, comes here again.
void PrefixIndex::LimitIdle() {
  while (pool_.stats().idle_bytes > options_.max_idle_bytes &&
         !(evictable_.empty() && loose_.empty())) {
    GiveUpIdle();
  }
}

void PrefixIndex::OnLive(BlockId block) {
  const PrefixNodeId id = NodeOf(block).value();
  const std::size_t group = pool_.group(block).index();
  Node& node = At(id);
  if (!KeepsAll(group)) loose_.erase({node.idle_at[group], id, group});
  if (node.evictable()) evictable_.erase({node.last_use, id});
  ++node.live;
}

void PrefixIndex::GiveUpIdle() {
  KV_CHECK(!evictable_.empty() || !loose_.empty());
  ++stats_.evicted;
  const bool loose = !loose_.empty() && (evictable_.empty() ||
                                         std::get<0>(*loose_.begin()) <= evictable_.begin()->first);
  if (loose) {
    const auto [tick, id, group] = *loose_.begin();
    Detach(id, group);
  } else {
    Forget(evictable_.begin()->second);
  }
}

void PrefixIndex::GiveUp(BlockId block) {
  const PrefixNodeId id = NodeOf(block).value();
  const std::size_t group = pool_.group(block).index();
  if (!KeepsAll(group)) {
    Detach(id, group);
    return;
  }
  ForgetDescendants(id);
  Forget(id);
}

void PrefixIndex::Detach(PrefixNodeId id, std::size_t group) {
  Node& node = At(id);
  const BlockId block = node.blocks[group].value();
  if (pool_.live(block)) {
    --node.live;
    if (node.evictable()) {
      node.last_use = ++tick_;
      evictable_.emplace(node.last_use, id);
    }
  } else {
    loose_.erase({node.idle_at[group], id, group});
  }
  node.blocks[group].reset();
  node_of_block_[block.index()].reset();
  pool_.StopKeeping(block);
  if (node.evictable() && node.holds_nothing()) Forget(id);
}

// All are idle: whoever held one of them would hold this one too, whose only holder writes it.
void PrefixIndex::ForgetDescendants(PrefixNodeId id) {
  std::vector<PrefixNodeId> path = {id};
  while (true) {
    const Node& node = At(path.back());
    if (node.children > 0) {
      const auto child = siblings_.lower_bound(KeyOf(node.tenant_salt, path.back(), {}));
      path.push_back(child->second);
      continue;
    }
    const PrefixNodeId leaf = path.back();
    path.pop_back();
    if (path.empty()) return;
    KV_CHECK(!At(leaf).used());
    Forget(leaf);
  }
}

void PrefixIndex::Forget(PrefixNodeId leaf) {
  std::optional<PrefixNodeId> next = leaf;
  while (next) {
    const PrefixNodeId id = *next;
    next = std::nullopt;
    Node& node = At(id);
    KV_CHECK(node.children == 0 && node.pins == 0);
    if (!node.used()) evictable_.erase({node.last_use, id});
    siblings_.erase(KeyOf(node.tenant_salt, node.parent, node.tokens));
    by_hash_.erase(node.hash);
    for (const auto& [slot, kept] : node.log_probs) stats_.log_prob_bytes -= kept.bytes();
    for (std::size_t group = 0; group < node.blocks.size(); ++group) {
      if (!node.blocks[group]) continue;
      const BlockId block = *node.blocks[group];
      if (!pool_.live(block)) loose_.erase({node.idle_at[group], id, group});
      node_of_block_[block.index()].reset();
      pool_.StopKeeping(block);
    }
    const std::optional<PrefixNodeId> parent_id = node.parent;
    nodes_[id.index()].reset();
    unused_.push_back(id);
    --stats_.nodes;
    if (!parent_id) return;
    Node& parent = At(*parent_id);
    --parent.children;
    if (!parent.evictable()) return;
    evictable_.emplace(parent.last_use, *parent_id);
    if (parent.holds_nothing()) next = parent_id;
  }
}

void PrefixIndex::EvictIdle() {
  while (!evictable_.empty() || !loose_.empty()) GiveUpIdle();
}

std::vector<PrefixNodeReport> PrefixIndex::Report(std::uint64_t tenant_salt) const {
  std::vector<PrefixNodeReport> all;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i] || nodes_[i]->tenant_salt != tenant_salt) continue;
    all.push_back({PrefixNodeId(i), nodes_[i]->parent, nodes_[i]->blocks, nodes_[i]->hits});
  }
  return all;
}

PrefixIndexStats PrefixIndex::stats() const { return stats_; }

void PrefixIndex::CheckInvariants() const {
  std::vector<std::uint32_t> children(nodes_.size(), 0);
  std::uint64_t nodes = 0;
  std::uint64_t idle = 0;
  std::uint64_t evictable = 0;
  std::uint64_t loose = 0;
  std::uint64_t log_prob_bytes = 0;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i]) continue;
    const PrefixNodeId id(i);
    const Node& node = *nodes_[i];
    ++nodes;
    KV_CHECK(node.tokens.size() == pool_.geometry().block_tokens());
    KV_CHECK(node.hash == HashOf(node.tenant_salt, node.parent, node.tokens));
    KV_CHECK(by_hash_.at(node.hash) == id);
    KV_CHECK(siblings_.at(KeyOf(node.tenant_salt, node.parent, node.tokens)) == id);
    std::uint32_t live = 0;
    for (std::size_t group = 0; group < node.blocks.size(); ++group) {
      if (!node.blocks[group]) continue;
      const BlockId block = *node.blocks[group];
      KV_CHECK(NodeOf(block) == id && pool_.group(block).index() == group);
      if (pool_.live(block)) {
        ++live;
        KV_CHECK(pool_.kept(block));
        if (KeepsAll(group) && node.parent) {
          KV_CHECK(pool_.live(At(*node.parent).blocks[group].value()));
        }
        continue;
      }
      ++idle;
      if (KeepsAll(group)) continue;
      ++loose;
      KV_CHECK(loose_.contains({node.idle_at[group], id, group}));
    }
    KV_CHECK(live == node.live);
    KV_CHECK(!node.holds_nothing() || node.pins > 0 || node.children > 0);
    if (node.parent) {
      const Node& parent = At(*node.parent);
      KV_CHECK(parent.tenant_salt == node.tenant_salt);
      if (pool_.geometry().KeepsAll()) {
        KV_CHECK(!node.used() || parent.used());
        KV_CHECK(parent.used() || parent.last_use > node.last_use);
      }
      ++children[node.parent->index()];
    }
    if (node.evictable()) {
      ++evictable;
      KV_CHECK(evictable_.contains({node.last_use, id}));
    }
    for (const auto& [slot, kept] : node.log_probs) log_prob_bytes += kept.bytes();
  }
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    KV_CHECK(!nodes_[i] || nodes_[i]->children == children[i]);
  }
  KV_CHECK(nodes == by_hash_.size() && nodes == siblings_.size() && nodes == stats_.nodes);
  KV_CHECK(nodes + unused_.size() == nodes_.size());
  KV_CHECK(evictable == evictable_.size() && loose == loose_.size());
  KV_CHECK(idle == pool_.stats().idle_blocks);
  KV_CHECK(pool_.stats().idle_bytes <= options_.max_idle_bytes);
  KV_CHECK(log_prob_bytes == stats_.log_prob_bytes);
}

}  // namespace kvasir::kvcache
