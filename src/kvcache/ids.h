// Strong ids: an id of one kind is neither a number nor an id of another kind.
#ifndef KVASIR_KVCACHE_IDS_H_
#define KVASIR_KVCACHE_IDS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace kvasir::kvcache {

// Names one thing of the kind Tag by its index. A value type without an "invalid" state: where an
// id may be absent, std::optional says so.
template <typename Tag>
class StrongId {
 public:
  constexpr explicit StrongId(std::uint32_t index) : index_(index) {}
  constexpr std::uint32_t index() const { return index_; }
  // The check takes the defaulted comparison's own 0 for a null pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;

 private:
  std::uint32_t index_;
};

// A physical block of one BlockPool.
using BlockId = StrongId<struct BlockIdTag>;
// An indexed block of one PrefixIndex. Reused once the index forgets the block.
using PrefixNodeId = StrongId<struct PrefixNodeIdTag>;
// A sequence of one SequenceManager. Reused once the sequence is finished.
using SequenceId = StrongId<struct SequenceIdTag>;
// A cache group of one SequenceManager.
using CacheGroupId = StrongId<struct CacheGroupIdTag>;

}  // namespace kvasir::kvcache

template <typename Tag>
struct std::hash<kvasir::kvcache::StrongId<Tag>> {
  std::size_t operator()(const kvasir::kvcache::StrongId<Tag>& id) const {
    return std::hash<std::uint32_t>()(id.index());
  }
};

#endif  // KVASIR_KVCACHE_IDS_H_
