// For tests: a BlockStore in memory, which answers when and what the test wants.
#ifndef KVASIR_KVCACHE_TEST_BLOCK_STORE_H_
#define KVASIR_KVCACHE_TEST_BLOCK_STORE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "kvcache/block_store.h"

namespace kvasir::kvcache {

// Single-threaded.
class TestBlockStore : public BlockStore {
 public:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;
  static Key KeyOf(const BlockIdentity& identity) {
    return {identity.name.low, identity.name.high, identity.group};
  }

  bool answers = true;      // Else Deliver does, later.
  bool probe_lies = false;  // It says that everything is there.
  std::function<bool(const BlockIdentity&)> loses = [](const BlockIdentity&) { return false; };
  std::chrono::microseconds waits{10'000'000};
  std::map<Key, std::pair<BlockIdentity, std::vector<std::byte>>> blocks;
  std::uint64_t puts = 0;
  std::uint64_t reads = 0;  // Of blocks.
  std::uint64_t probed = 0;

  void Put(const BlockIdentity& identity, std::span<const std::byte> block) override {
    ++puts;
    blocks.insert_or_assign(KeyOf(identity),
                            std::pair(identity, std::vector(block.begin(), block.end())));
  }

  std::shared_ptr<StoreRead> Read(std::vector<BlockIdentity> wanted, bool probe) override {
    auto read = std::make_shared<StoreRead>();
    std::vector<StoredBlock> found;
    for (const BlockIdentity& identity : wanted) found.push_back(Find(identity, probe));
    (probe ? probed : reads) += wanted.size();
    if (answers) {
      read->Finish(std::move(found));
    } else {
      late_.emplace_back(read, std::move(found));
    }
    return read;
  }
  // Answers everything asked so far.
  void Deliver() {
    for (auto& [read, found] : std::exchange(late_, {})) read->Finish(std::move(found));
  }
  std::chrono::microseconds patience() const override { return waits; }
  BlockStoreStats stats() const override { return {}; }

 private:
  StoredBlock Find(const BlockIdentity& identity, bool probe) const {
    StoredBlock found;
    const auto at = blocks.find(KeyOf(identity));
    found.found = at != blocks.end() && !loses(identity);
    if (probe) {
      found.found = found.found || probe_lies;
      return found;
    }
    if (!found.found) return found;
    const auto& [written, bytes] = at->second;
    found.found = written.fingerprint == identity.fingerprint &&
                  written.layout == identity.layout && written.witness == identity.witness &&
                  written.tokens == identity.tokens && bytes.size() == identity.bytes;
    if (!found.found) return found;
    found.bytes = base::AlignedArray<std::byte>(bytes.size());
    std::ranges::copy(bytes, found.bytes.data());
    return found;
  }

  std::vector<std::pair<std::shared_ptr<StoreRead>, std::vector<StoredBlock>>> late_;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_TEST_BLOCK_STORE_H_
