// The oracle's code; the tests that use it are random_operations_test.cc and small_world_test.cc.
#include "kvcache/cache_oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace kvasir::kvcache {
namespace {

// The element of K, V or a latent row, found with nothing but the layout's documentation.
float& KAt(const kernels::KvView& view, std::size_t position, std::size_t head,
           std::size_t column) {
  const std::size_t slot = position % view.block_tokens;
  auto* tiles = reinterpret_cast<float*>(view.blocks[position / view.block_tokens] + view.k_offset);
  return tiles[head * view.block_tokens * view.head_dim + slot / 16 * view.head_dim * 16 +
               column * 16 + slot % 16];
}
float& VAt(const kernels::KvView& view, std::size_t position, std::size_t head,
           std::size_t column) {
  const std::size_t slot = position % view.block_tokens;
  auto* rows = reinterpret_cast<float*>(view.blocks[position / view.block_tokens] + view.v_offset);
  return rows[head * view.block_tokens * view.head_dim + slot * view.head_dim + column];
}
float& LatentAt(const kernels::LatentView& view, std::size_t position, std::size_t column) {
  const std::size_t slot = position % view.block_tokens;
  auto* rows = reinterpret_cast<float*>(view.blocks[position / view.block_tokens] + view.offset);
  return rows[slot * (view.latent_dim + view.rope_dim) + column];
}

}  // namespace

CacheOracle::CacheOracle(const CacheGeometry& geometry, const BlockPoolOptions& options,
                         std::size_t sequences)
    : geometry_(geometry), pool_(BlockPool::Make(geometry, options).value()) {
  for (std::size_t i = 0; i < sequences; ++i) sequences_.emplace_back(*pool_);
  oracle_.resize(sequences);
  for (OracleSequence& oracle : oracle_) oracle.rows.resize(geometry.layers());
}

std::uint64_t CacheOracle::live_blocks() const {
  std::vector<std::uint64_t> labels;
  for (const OracleSequence& oracle : oracle_) {
    labels.insert(labels.end(), oracle.labels.begin(), oracle.labels.end());
  }
  std::sort(labels.begin(), labels.end());
  return static_cast<std::uint64_t>(std::unique(labels.begin(), labels.end()) - labels.begin());
}

bool CacheOracle::IsShared(std::uint64_t label) const {
  std::size_t holders = 0;
  for (const OracleSequence& oracle : oracle_) {
    holders += static_cast<std::size_t>(std::ranges::count(oracle.labels, label));
  }
  return holders > 1;
}

bool CacheOracle::Reserve(std::size_t index, std::size_t count) {
  OracleSequence& oracle = oracle_[index];
  std::vector<std::uint64_t> labels = oracle.labels;
  std::uint64_t taken = 0;
  for (std::size_t p = oracle.length; p < oracle.length + count; ++p) {  // One slot at a time.
    const std::size_t block = p / geometry_.block_tokens();
    if (block == labels.size()) {
      labels.push_back(next_label_++);
      ++taken;
    } else if (block < oracle.labels.size() && labels[block] == oracle.labels[block] &&
               IsShared(labels[block])) {
      labels[block] = next_label_++;  // Copy on write.
      ++taken;
    }
  }
  const bool fits = live_blocks() + taken <= pool_->stats().capacity_blocks;
  const base::Result<void> reserved = sequences_[index].Reserve(count);
  EXPECT_EQ(reserved.has_value(), fits);
  if (reserved) oracle.labels = labels;
  if (!reserved) {
    EXPECT_EQ(reserved.error().code, base::ErrorCode::kExhausted);
  }
  return reserved.has_value();
}

std::vector<float*> CacheOracle::Entry(std::size_t index, std::size_t layer,
                                       std::size_t position) const {
  std::vector<float*> entry;
  if (geometry_.is_latent()) {
    const kernels::LatentView view = sequences_[index].Latents(layer);
    for (std::size_t column = 0; column < geometry_.latent_dim() + geometry_.rope_dim(); ++column) {
      entry.push_back(&LatentAt(view, position, column));
    }
    return entry;
  }
  const kernels::KvView view = sequences_[index].View(layer);
  for (std::size_t head = 0; head < geometry_.kv_heads(); ++head) {
    for (std::size_t column = 0; column < geometry_.head_dim(); ++column) {
      entry.push_back(&KAt(view, position, head, column));
      entry.push_back(&VAt(view, position, head, column));
    }
  }
  return entry;
}

// Stores rows no other position of any sequence has, and remembers them unless the step fails.
void CacheOracle::Store(std::size_t index, std::size_t position, float stamp) {
  for (std::size_t layer = 0; layer < geometry_.layers(); ++layer) {
    float value = stamp + static_cast<float>(layer) / 8;
    for (float* element : Entry(index, layer, position)) {
      *element = value;
      oracle_[index].rows[layer].push_back(value);
      value = -value + (value < 0 ? 1.0f / 128 : 0.0f);
    }
  }
}

bool CacheOracle::Append(std::size_t index, std::size_t count) {
  if (!Reserve(index, count)) return false;
  const std::size_t length = oracle_[index].length;
  for (std::size_t i = 0; i < count; ++i) {
    Store(index, length + i, static_cast<float>(next_stamp_++ % 65536));
  }
  sequences_[index].Advance(count);
  oracle_[index].length += count;
  return true;
}

bool CacheOracle::FailedStep(std::size_t index, std::size_t count) {
  if (!Reserve(index, count)) return false;
  OracleSequence& oracle = oracle_[index];
  const std::vector<std::vector<float>> rows = oracle.rows;
  for (std::size_t i = 0; i < count; ++i) Store(index, oracle.length + i, 1e30f);
  oracle.rows = rows;
  return true;
}

void CacheOracle::Truncate(std::size_t index, std::size_t length) {
  OracleSequence& oracle = oracle_[index];
  const std::size_t width = geometry_.layer_bytes_per_token() / sizeof(float);
  for (std::vector<float>& rows : oracle.rows) rows.resize(length * width);
  while ((oracle.labels.size() * geometry_.block_tokens()) >= length + geometry_.block_tokens()) {
    oracle.labels.pop_back();
  }
  oracle.length = length;
  sequences_[index].Truncate(length);
}

void CacheOracle::Reset(std::size_t index) {
  sequences_[index].Reset();
  Truncate(index, 0);
}

void CacheOracle::Fork(std::size_t from, std::size_t to) {
  sequences_[to] = sequences_[from].Fork();
  oracle_[to] = oracle_[from];
  while (oracle_[to].labels.size() * geometry_.block_tokens() >=
         oracle_[to].length + geometry_.block_tokens()) {  // Reserved blocks are not shared.
    oracle_[to].labels.pop_back();
  }
}

void CacheOracle::Destroy(std::size_t index) {
  sequences_[index] = CachedSequence(*pool_);
  Truncate(index, 0);
}

void CacheOracle::CheckContents(std::size_t index) const {
  const OracleSequence& oracle = oracle_[index];
  const CachedSequence& sequence = sequences_[index];
  ASSERT_EQ(sequence.length(), oracle.length);
  for (std::size_t layer = 0; layer < geometry_.layers(); ++layer) {
    std::size_t next = 0;
    for (std::size_t position = 0; position < oracle.length; ++position) {
      for (const float* element : Entry(index, layer, position)) {
        if (*element != oracle.rows[layer][next++]) {
          FAIL() << "sequence " << index << " layer " << layer << " position " << position;
        }
      }
    }
    ASSERT_EQ(next, oracle.rows[layer].size());
  }
}

// Tables against labels, one to one, and every byte count against both.
void CacheOracle::CheckSharing() const {
  std::map<std::uint64_t, BlockId> id_of;
  std::map<BlockId, std::uint64_t> holders;
  std::uint64_t held = 0;
  std::uint64_t held_alone = 0;
  const std::uint64_t block_bytes = geometry_.block_bytes();
  for (std::size_t i = 0; i < size(); ++i) {
    const CachedSequence& sequence = sequences_[i];
    const std::vector<std::uint64_t>& labels = oracle_[i].labels;
    ASSERT_EQ(sequence.blocks().size(), labels.size());
    std::uint64_t shared = 0;
    for (std::size_t b = 0; b < labels.size(); ++b) {
      const BlockId id = sequence.blocks()[b];
      ASSERT_EQ(id_of.emplace(labels[b], id).first->second, id);
      ++holders[id];
      if (IsShared(labels[b])) ++shared;
    }
    ASSERT_EQ(sequence.held_bytes(), labels.size() * block_bytes);
    ASSERT_EQ(sequence.shared_bytes(), shared * block_bytes);
    ASSERT_EQ(sequence.waste_bytes(),
              sequence.held_bytes() - oracle_[i].length * geometry_.bytes_per_token());
    std::uint64_t held_by_layers = 0;
    for (std::size_t layer = 0; layer < geometry_.layers(); ++layer) {
      held_by_layers += sequence.held_bytes(layer);
    }
    ASSERT_EQ(held_by_layers, sequence.held_bytes());
    held += sequence.held_bytes();
    held_alone += sequence.held_bytes() - sequence.shared_bytes();
  }
  ASSERT_EQ(id_of.size(), holders.size());
  for (const auto& [id, count] : holders) ASSERT_EQ(pool_->references(id), count);
  const BlockPoolStats stats = pool_->stats();
  ASSERT_EQ(stats.live_blocks, id_of.size());
  ASSERT_EQ(stats.live_blocks, live_blocks());
  ASSERT_EQ(held, stats.referenced_bytes);
  ASSERT_EQ(held - stats.saved_bytes(), stats.live_bytes);
  ASSERT_EQ(held_alone + stats.shared_blocks * block_bytes, stats.live_bytes);
}

void CacheOracle::Check() const {
  pool_->CheckInvariants();
  for (std::size_t i = 0; i < size(); ++i) {
    sequences_[i].CheckInvariants();
    CheckContents(i);
  }
  CheckSharing();
}

}  // namespace kvasir::kvcache
