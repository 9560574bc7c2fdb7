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
    if (node) pool_.StopKeeping(node->block);
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
    match.blocks.push_back(At(*node).block);
    match.length += block_tokens;
  }
  const std::size_t rest = std::min(tokens.size() - match.length, block_tokens);
  if (rest == 0) return match;
  const auto [partly, common] =
      FindPartly(KeyOf(tenant_salt, node, tokens.subspan(match.length, rest)));
  if (partly) {
    match.blocks.push_back(At(*partly).block);
    match.length += common;
  }
  return match;
}

std::optional<PrefixNodeId> PrefixIndex::Insert(std::uint64_t tenant_salt,
                                                std::optional<PrefixNodeId> parent,
                                                std::span<const TokenId> tokens, BlockId block) {
  KV_CHECK(tokens.size() == pool_.geometry().block_tokens());
  KV_CHECK(!parent || (!At(*parent).idle && At(*parent).tenant_salt == tenant_salt));
  const base::Hash128 hash = HashOf(tenant_salt, parent, tokens);
  bool collided = false;
  const auto equal = FindExactly(hash, KeyOf(tenant_salt, parent, tokens), &collided);
  if (equal) return equal;
  if (collided) {
    ++stats_.collisions;
    return std::nullopt;
  }
  pool_.Keep(block);
  if (unused_.empty()) {
    unused_.emplace_back(static_cast<std::uint32_t>(nodes_.size()));
    nodes_.emplace_back();
  }
  const PrefixNodeId id = unused_.back();
  unused_.pop_back();
  Node& node = nodes_[id.index()].emplace(Node{.hash = hash,
                                               .tenant_salt = tenant_salt,
                                               .parent = parent,
                                               .block = block,
                                               .tokens = {tokens.begin(), tokens.end()}});
  if (parent) ++At(*parent).children;
  if (node_of_block_.size() <= block.index()) node_of_block_.resize(block.index() + 1);
  node_of_block_[block.index()] = id;
  by_hash_.emplace(hash, id);
  siblings_.emplace(KeyOf(tenant_salt, parent, node.tokens), id);
  ++stats_.nodes;
  ++stats_.inserted;
  return id;
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
  Node& node = At(id);
  node.idle = true;
  node.last_use = ++tick_;
  if (node.children == 0) evictable_.emplace(node.last_use, id);
  if (pool_.stats().idle_blocks > options_.max_idle_blocks) GiveUpIdle();
}

void PrefixIndex::OnLive(BlockId block) {
  const PrefixNodeId id = NodeOf(block).value();
  Node& node = At(id);
  node.idle = false;
  if (node.children == 0) evictable_.erase({node.last_use, id});
}

void PrefixIndex::GiveUpIdle() {
  KV_CHECK(!evictable_.empty());
  ++stats_.evicted;
  Forget(evictable_.begin()->second);
}

void PrefixIndex::GiveUp(BlockId block) {
  const PrefixNodeId id = NodeOf(block).value();
  ForgetDescendants(id);
  Forget(id);
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
    KV_CHECK(At(leaf).idle);
    Forget(leaf);
  }
}

void PrefixIndex::Forget(PrefixNodeId id) {
  Node& node = At(id);
  KV_CHECK(node.children == 0);
  if (node.idle) evictable_.erase({node.last_use, id});
  siblings_.erase(KeyOf(node.tenant_salt, node.parent, node.tokens));
  by_hash_.erase(node.hash);
  node_of_block_[node.block.index()].reset();
  for (const auto& [slot, kept] : node.log_probs) stats_.log_prob_bytes -= kept.bytes();
  if (node.parent) {
    Node& parent = At(*node.parent);
    --parent.children;
    if (parent.idle && parent.children == 0) evictable_.emplace(parent.last_use, *node.parent);
  }
  const BlockId block = node.block;
  nodes_[id.index()].reset();
  unused_.push_back(id);
  --stats_.nodes;
  pool_.StopKeeping(block);
}

void PrefixIndex::EvictIdle() {
  while (!evictable_.empty()) GiveUpIdle();
}

PrefixIndexStats PrefixIndex::stats() const { return stats_; }

void PrefixIndex::CheckInvariants() const {
  std::vector<std::uint32_t> children(nodes_.size(), 0);
  std::uint64_t nodes = 0;
  std::uint64_t idle = 0;
  std::uint64_t evictable = 0;
  std::uint64_t log_prob_bytes = 0;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i]) continue;
    const PrefixNodeId id(i);
    const Node& node = *nodes_[i];
    ++nodes;
    KV_CHECK(NodeOf(node.block) == id);
    KV_CHECK(node.tokens.size() == pool_.geometry().block_tokens());
    KV_CHECK(node.hash == HashOf(node.tenant_salt, node.parent, node.tokens));
    KV_CHECK(by_hash_.at(node.hash) == id);
    KV_CHECK(siblings_.at(KeyOf(node.tenant_salt, node.parent, node.tokens)) == id);
    if (node.parent) {
      const Node& parent = At(*node.parent);
      KV_CHECK(parent.tenant_salt == node.tenant_salt);
      KV_CHECK(node.idle || !parent.idle);
      KV_CHECK(!parent.idle || parent.last_use > node.last_use);
      ++children[node.parent->index()];
    }
    if (node.idle) ++idle;
    if (node.idle && node.children == 0) {
      ++evictable;
      KV_CHECK(evictable_.contains({node.last_use, id}));
    } else if (!node.idle) {
      KV_CHECK(pool_.kept(node.block));  // Which also checks that the block is live.
    }
    for (const auto& [slot, kept] : node.log_probs) log_prob_bytes += kept.bytes();
  }
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    KV_CHECK(!nodes_[i] || nodes_[i]->children == children[i]);
  }
  KV_CHECK(nodes == by_hash_.size() && nodes == siblings_.size() && nodes == stats_.nodes);
  KV_CHECK(nodes + unused_.size() == nodes_.size());
  KV_CHECK(evictable == evictable_.size());
  KV_CHECK(idle == pool_.stats().idle_blocks && idle <= options_.max_idle_blocks);
  KV_CHECK(log_prob_bytes == stats_.log_prob_bytes);
}

}  // namespace kvasir::kvcache
