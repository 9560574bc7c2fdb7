// LmdbStore: a store in a directory of this machine, shared by its processes.
#ifndef KVASIR_STORE_LMDB_STORE_H_
#define KVASIR_STORE_LMDB_STORE_H_

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/key_value.h"

struct MDB_env;

namespace kvasir::store {

struct LmdbOptions {
  std::string directory;
  // Most bytes of values; the file may be an eighth and kLmdbSlack larger. At least kLmdbLeast.
  std::uint64_t limit_bytes = std::uint64_t{4} << 30;
};
inline constexpr std::uint64_t kLmdbLeast = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kLmdbSlack = std::uint64_t{64} << 20;

// Three tables in one LMDB file, changed together in one transaction:
//   values  key (20 bytes: name, group) → value
//   uses    key → stamp and bytes of its value
//   order   stamp, key → nothing: the least recently used first; and the totals, in `meta`
// Stamps are counted in the file, so that processes agree on what was used last. A process that is
// killed at any moment leaves the state before its last transaction or after it. A transaction's
// data reaches the disk before its commit; the commit itself may be lost in a power cut.
//
// The file is not for network file systems, and a directory may be open once in a process.
class LmdbStore : public KeyValueStore {
 public:
  // Creates the directory (for its owner alone) and file if need be. A file that LMDB refuses, or
  // that is shorter than it says, is set aside as data.mdb.damaged, and a new one begun. kUsage: a
  // limit below kLmdbLeast, or a directory that this process has open; kIo otherwise.
  static base::Result<std::unique_ptr<LmdbStore>> Open(const LmdbOptions& options);
  ~LmdbStore() override;
  LmdbStore(const LmdbStore&) = delete;
  LmdbStore& operator=(const LmdbStore&) = delete;

  std::string_view name() const override { return name_; }
  std::string notice() const override;
  base::Result<std::vector<bool>> Has(std::span<const BlockKey> keys) override;
  base::Result<void> Get(std::span<const BlockKey> keys, const Visit& visit) override;
  base::Result<PutCounts> Put(std::span<const KeyValue> values) override;
  base::Result<void> Touch(std::span<const BlockKey> keys) override;
  base::Result<void> Remove(std::span<const BlockKey> keys) override;

  // Whether a damaged file was set aside when it was opened.
  bool set_aside() const { return set_aside_; }
  // Aborts if the tables disagree. Linear.
  void CheckInvariants();

 private:
  class Transaction;  // lmdb_store.cc

  explicit LmdbStore(const LmdbOptions& options)
      : options_(options), name_("LMDB in '" + options.directory + "'") {}
  base::Result<void> TakeDirectory();
  base::Result<void> SetAside();
  base::Result<void> OpenFile();
  base::Result<void> FaultOf(int status) const;
  // In one transaction; makes room, and tries again, as long as the file is full.
  base::Result<void> PutTogether(std::span<const KeyValue> values, PutCounts& counts);
  int TryPut(std::span<const KeyValue> values, PutCounts& counts);
  base::Result<std::uint64_t> MakeRoom(std::uint64_t bytes);

  const LmdbOptions options_;
  const std::string name_;
  std::string registered_;  // Among this process's open directories.
  bool set_aside_ = false;
  std::shared_mutex map_mutex_;  // Held alone while the map is resized, shared by transactions.
  MDB_env* env_ = nullptr;
  unsigned values_ = 0;
  unsigned uses_ = 0;
  unsigned order_ = 0;
  unsigned meta_ = 0;
};

}  // namespace kvasir::store

#endif  // KVASIR_STORE_LMDB_STORE_H_
