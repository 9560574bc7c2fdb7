// SequenceManager: what its blocks are in a store.
#include <span>
#include <vector>

#include "kvcache/block_store.h"
#include "kvcache/chain_hash.h"
#include "kvcache/sequence_manager.h"

namespace kvasir::kvcache {

void SequenceManager::PutBlock(Entry& entry, const GroupBlocks& taken) {
  const std::size_t block_tokens = geometry().block_tokens();
  const auto tokens = std::span<const TokenId>(entry.tokens);
  while (entry.witnesses.size() < entry.path.size()) {
    const std::size_t begin = entry.witnesses.size() * block_tokens;
    const base::Hash128 before = begin == 0 ? base::Hash128{} : entry.witnesses.back();
    entry.witnesses.push_back(WitnessHash(before, tokens.subspan(begin, block_tokens)));
  }
  const std::size_t block = entry.path.size() - 1;
  const auto own = tokens.subspan(block * block_tokens, block_tokens);
  BlockIdentity identity = {.fingerprint = options_.index.fingerprint,
                            .layout = layout_,
                            .name = index_->HashOf(entry.path[block]),
                            .witness = entry.witnesses[block],
                            .tokens = {own.begin(), own.end()}};
  for (std::uint32_t group = 0; group < taken.size(); ++group) {
    const CacheGroup& its = geometry().groups()[group];
    if (!taken[group] || !its.IsStored()) continue;
    identity.group = group;
    identity.bytes = its.block_bytes;
    options_.store->Put(identity, {pool_->data(*taken[group]), its.block_bytes});
  }
}

std::vector<BlockIdentity> SequenceManager::IdentitiesOf(std::uint64_t tenant_salt,
                                                         std::span<const TokenId> text) const {
  const std::size_t block_tokens = geometry().block_tokens();
  std::vector<BlockIdentity> identities;
  base::Hash128 name = RootHash(options_.index.fingerprint, tenant_salt);
  base::Hash128 witness;
  for (std::size_t begin = 0; begin + block_tokens <= text.size(); begin += block_tokens) {
    const auto own = text.subspan(begin, block_tokens);
    name = options_.index.hash(name, own);
    witness = WitnessHash(witness, own);
    identities.push_back({.fingerprint = options_.index.fingerprint,
                          .layout = layout_,
                          .name = name,
                          .witness = witness,
                          .tokens = {own.begin(), own.end()}});
  }
  return identities;
}

std::size_t SequenceManager::Export(std::uint64_t tenant_salt, std::span<const TokenId> text,
                                    BlockStore& to) {
  const std::size_t block_tokens = geometry().block_tokens();
  const SequenceId id = Create(tenant_salt);
  Truncate(id, TakePrefix(id, text) / block_tokens * block_tokens);
  const CachedSequence& held = At(id).cache;
  const std::size_t length = held.length();
  std::vector<BlockIdentity> identities = IdentitiesOf(tenant_salt, text.first(length));
  for (const BlockTable& table : held.tables()) {
    const CacheGroup& group = geometry().group(table.group());
    for (std::size_t i = 0; i < identities.size(); ++i) {
      if (!table.holds(i) || !group.IsStored()) continue;
      identities[i].group = table.group().index();
      identities[i].bytes = group.block_bytes;
      to.Put(identities[i], {table.addresses()[i], group.block_bytes});
    }
  }
  Finish(id);
  return length;
}

}  // namespace kvasir::kvcache
