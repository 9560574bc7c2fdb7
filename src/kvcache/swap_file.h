// A preempted sequence's blocks in a file of this host, until it resumes.
#ifndef KVASIR_KVCACHE_SWAP_FILE_H_
#define KVASIR_KVCACHE_SWAP_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/env.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/token_id.h"
#include "kvcache/cache_geometry.h"
#include "kvcache/sequence.h"

namespace kvasir::kvcache {

// What a swap file must be of, to be believed.
struct SwapKey {
  base::Hash128 fingerprint;
  std::span<const base::TokenId> tokens;  // Of positions [0, length), all that are stored.
};

// Writes the sequence, whose tokens are those of the key, and returns the file's bytes. kIo: the
// file may be there in part, and is refused when read. Not synced: it need not outlive a crash.
//
// Not a format to keep: the file is private to the process that wrote it, in its byte order. It has
// a header (magic, version, fingerprint, block size, length), the tokens, then group by group each
// block that a later query may see, its empty slots zeroed; after the header and after each block a
// hash of that part, seeded by the one before. So a file that is torn, flipped in any bit,
// reordered or another sequence's is refused.
base::Result<std::uint64_t> WriteSwapFile(base::Env& env, const std::string& path,
                                          const SwapKey& key, const CachedSequence& sequence);

// Calls visit(group, entry) for every block in a swap file, in its order; stops at an Error.
template <typename Visit>
base::Result<void> VisitSwapped(const CacheGeometry& geometry, std::size_t length,
                                const Visit& visit) {
  for (std::uint32_t group = 0; group < geometry.groups().size(); ++group) {
    const Retention& keep = geometry.groups()[group].retention;
    for (std::size_t i = 0; i < geometry.BlocksFor(length); ++i) {
      if (!keep.NeedsBlock(i, length, geometry.block_tokens())) continue;
      KV_TRY(visit(CacheGroupId(group), i));
    }
  }
  return base::Success();
}

// Movable; the file may be removed while it is open. Thread-compatible.
class SwapReader {
 public:
  // kIo if it cannot be read; kBadData if it is not, to the byte, a file of this key and geometry
  // as far as its size, header and tokens show.
  static base::Result<SwapReader> Open(base::Env& env, const std::string& path, const SwapKey& key,
                                       const CacheGeometry& geometry);

  // The next block, in the order of VisitSwapped; to: [block_bytes], or null to pass over it.
  // kBadData, and nothing to be believed of `to`, if its hash is wrong.
  base::Result<void> ReadBlock(std::uint64_t block_bytes, std::byte* to);

 private:
  SwapReader(std::unique_ptr<base::FileBytes> file, std::size_t offset, const base::Hash128& hash)
      : file_(std::move(file)), offset_(offset), hash_(hash) {}

  std::unique_ptr<base::FileBytes> file_;
  std::size_t offset_;
  base::Hash128 hash_;  // Of the part before.
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_SWAP_FILE_H_
