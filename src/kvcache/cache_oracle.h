// For tests: sequences in the cache beside an obvious, slow model of them. Every operation is done
// to both; Check compares everything that can be seen.
#ifndef KVASIR_KVCACHE_CACHE_ORACLE_H_
#define KVASIR_KVCACHE_CACHE_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kvcache/block_pool.h"
#include "kvcache/sequence.h"

namespace kvasir::kvcache {

// What a sequence must hold: every row in plain vectors, and which physical block each table entry
// stands for, as a label. Two entries with one label are one shared block.
struct OracleSequence {
  std::vector<std::vector<float>> rows;  // [layers][length · values of an entry]
  std::vector<std::uint64_t> labels;
  std::size_t length = 0;
};

// Single-threaded. Sequences are named by index.
class CacheOracle {
 public:
  CacheOracle(const CacheGeometry& geometry, const BlockPoolOptions& options,
              std::size_t sequences);

  // Reserves, stores count new rows in every layer, advances. False if the model says the budget
  // does not hold it; then the cache must refuse too, and nothing change.
  bool Append(std::size_t index, std::size_t count);
  // A step that fails: reserves, stores rubbish, does not advance. False as above.
  bool FailedStep(std::size_t index, std::size_t count);
  void Truncate(std::size_t index, std::size_t length);
  void Reset(std::size_t index);
  void Fork(std::size_t from, std::size_t to);  // `to` is replaced. Requires from != to.
  void Destroy(std::size_t index);              // And makes an empty one in its place.

  // Contents, tables, lengths, sharing, accounting and invariants; reports through GoogleTest.
  void Check() const;

  std::size_t length(std::size_t index) const { return oracle_[index].length; }
  std::size_t blocks(std::size_t index) const { return oracle_[index].labels.size(); }
  std::size_t size() const { return sequences_.size(); }
  std::uint64_t live_blocks() const;
  CachedSequence& sequence(std::size_t index) { return sequences_[index]; }
  BlockPool& pool() { return *pool_; }

 private:
  bool Reserve(std::size_t index, std::size_t count);
  bool IsShared(std::uint64_t label) const;
  // Every element the layer keeps of this position.
  std::vector<float*> Entry(std::size_t index, std::size_t layer, std::size_t position) const;
  void Store(std::size_t index, std::size_t position, float stamp);
  void CheckContents(std::size_t index) const;
  void CheckSharing() const;

  CacheGeometry geometry_;
  std::unique_ptr<BlockPool> pool_;
  std::vector<CachedSequence> sequences_;
  std::vector<OracleSequence> oracle_;
  std::uint64_t next_label_ = 0;
  std::uint32_t next_stamp_ = 1;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_CACHE_ORACLE_H_
