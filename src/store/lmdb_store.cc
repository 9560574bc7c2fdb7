#include "store/lmdb_store.h"

#include <lmdb.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "store/lmdb_check.h"

namespace kvasir::store {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::size_t kKeyBytes = 20;
// Of values in a transaction: what it frees can be used again two later.
constexpr std::uint64_t kTransactionBytes = std::uint64_t{8} << 20;
constexpr int kAttempts = 9;  // At a batch; each gives up an eighth of the limit.

using KeyBytes = std::array<std::byte, kKeyBytes>;

KeyBytes BytesOf(const BlockKey& key) {
  KeyBytes bytes;
  std::memcpy(bytes.data(), &key.name, sizeof(key.name));
  std::memcpy(bytes.data() + sizeof(key.name), &key.group, sizeof(key.group));
  return bytes;
}

// A row of `uses`.
struct Use {
  std::uint64_t stamp = 0;
  std::uint64_t bytes = 0;  // What its value is charged.
};

// The one row of `meta`.
struct Totals {
  std::uint64_t stamp = 0;  // The latest given.
  std::uint64_t bytes = 0;  // Of all values.
};

// A row of `order`: the stamp's highest byte first, so that the oldest is the first.
struct OrderKey {
  std::array<std::byte, 8> stamp;
  KeyBytes key;
};
static_assert(sizeof(OrderKey) == 8 + kKeyBytes);

OrderKey OrderOf(std::uint64_t stamp, const KeyBytes& key) {
  OrderKey order = {{}, key};
  for (std::size_t i = 0; i < 8; ++i)
    order.stamp[i] = static_cast<std::byte>(stamp >> (56 - 8 * i));
  return order;
}

template <typename T>
MDB_val ValOf(const T& value) {
  return {sizeof(T), const_cast<T*>(&value)};
}

// Whole pages, as LMDB stores what is larger than half of one, and the rows beside it.
std::uint64_t Charge(std::size_t value_bytes) {
  constexpr std::uint64_t kPage = 4096;
  return (value_bytes + kPage - 1) / kPage * kPage + 256;
}

std::mutex open_mutex;
std::set<std::string>& OpenDirectories() {
  static std::set<std::string> open;
  return open;
}

}  // namespace

// One transaction; ends without effect unless committed. Remembers its first fault.
class LmdbStore::Transaction {
 public:
  Transaction(LmdbStore& store, unsigned flags) : store_(store), lock_(store.map_mutex_) {
    status_ = mdb_txn_begin(store.env_, nullptr, flags, &txn_);
    if (status_ == MDB_MAP_RESIZED) {  // By another process, with a larger limit.
      lock_.unlock();
      {
        const std::unique_lock alone(store.map_mutex_);
        mdb_env_set_mapsize(store.env_, 0);
      }
      lock_.lock();
      status_ = mdb_txn_begin(store.env_, nullptr, flags, &txn_);
    }
    if (status_ == MDB_READERS_FULL) {  // Of processes that were killed.
      mdb_reader_check(store.env_, nullptr);
      status_ = mdb_txn_begin(store.env_, nullptr, flags, &txn_);
    }
  }
  ~Transaction() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  int status() const { return status_; }
  MDB_txn* get() const { return txn_; }

  std::optional<MDB_val> Get(unsigned table, MDB_val key) {
    MDB_val value = {0, nullptr};
    if (!Keep(status_ == 0 ? mdb_get(txn_, table, &key, &value) : status_)) return std::nullopt;
    return value;
  }
  // Of a row of exactly this type.
  template <typename T>
  std::optional<T> Row(unsigned table, MDB_val key) {
    const std::optional<MDB_val> value = Get(table, key);
    if (!value || value->mv_size != sizeof(T)) return std::nullopt;
    T row;
    std::memcpy(&row, value->mv_data, sizeof(T));
    return row;
  }
  bool Set(unsigned table, MDB_val key, MDB_val value) {
    return Keep(status_ == 0 ? mdb_put(txn_, table, &key, &value, 0) : status_);
  }
  bool Delete(unsigned table, MDB_val key) {
    return Keep(status_ == 0 ? mdb_del(txn_, table, &key, nullptr) : status_);
  }
  int Commit() {
    if (status_ == 0) {
      status_ = mdb_txn_commit(std::exchange(txn_, nullptr));
    }
    return status_;
  }

  Totals totals() { return Row<Totals>(store_.meta_, ValOf(kTotalsKey)).value_or(Totals{}); }
  void SetTotals(const Totals& totals) { Set(store_.meta_, ValOf(kTotalsKey), ValOf(totals)); }

  // Makes this the most lately used. False if it is not there.
  bool Touch(const KeyBytes& key, Totals& totals) {
    std::optional<Use> use = Row<Use>(store_.uses_, ValOf(key));
    if (!use) return false;
    Delete(store_.order_, ValOf(OrderOf(use->stamp, key)));
    use->stamp = ++totals.stamp;
    Set(store_.uses_, ValOf(key), ValOf(*use));
    Set(store_.order_, ValOf(OrderOf(use->stamp, key)), MDB_val{0, nullptr});
    return true;
  }
  bool Remove(const KeyBytes& key, Totals& totals) {
    const std::optional<Use> use = Row<Use>(store_.uses_, ValOf(key));
    if (!use) return false;
    Delete(store_.order_, ValOf(OrderOf(use->stamp, key)));
    Delete(store_.uses_, ValOf(key));
    Delete(store_.values_, ValOf(key));
    totals.bytes -= std::min(totals.bytes, use->bytes);
    return true;
  }
  // Gives the least recently used up until so much is left. Returns how many.
  std::uint64_t EvictTo(std::uint64_t bytes, Totals& totals) {
    std::uint64_t evicted = 0;
    while (totals.bytes > bytes && status_ == 0) {
      const std::optional<KeyBytes> oldest = Oldest();
      if (!oldest || !Remove(*oldest, totals)) break;
      ++evicted;
    }
    return evicted;
  }

 private:
  static constexpr std::uint64_t kTotalsKey = 0;

  bool Keep(int status) {
    if (status != 0 && status != MDB_NOTFOUND && status_ == 0) status_ = status;
    return status == 0;
  }
  std::optional<KeyBytes> Oldest() {
    MDB_cursor* cursor = nullptr;
    if (!Keep(mdb_cursor_open(txn_, store_.order_, &cursor))) return std::nullopt;
    MDB_val key = {0, nullptr};
    const bool found = Keep(mdb_cursor_get(cursor, &key, nullptr, MDB_FIRST));
    std::optional<KeyBytes> oldest;
    if (found && key.mv_size == sizeof(OrderKey)) {
      OrderKey order;
      std::memcpy(&order, key.mv_data, sizeof(order));
      oldest = order.key;
    }
    mdb_cursor_close(cursor);
    return oldest;
  }

  LmdbStore& store_;
  std::shared_lock<std::shared_mutex> lock_;
  MDB_txn* txn_ = nullptr;
  int status_ = 0;
};

// ------------------------------------------------------------------ opening

Result<std::unique_ptr<LmdbStore>> LmdbStore::Open(const LmdbOptions& options) {
  if (options.limit_bytes < kLmdbLeast || options.limit_bytes > (std::uint64_t{1} << 46)) {
    return MakeError(ErrorCode::kUsage, "a store of {} bytes: its limit must be {} to 2^46",
                     options.limit_bytes, kLmdbLeast);
  }
  std::unique_ptr<LmdbStore> store(new LmdbStore(options));
  KV_TRY(store->TakeDirectory());
  if (!LmdbFileIsSound(options.directory)) {
    KV_TRY(store->SetAside());
  }
  KV_TRY(store->OpenFile());
  return store;
}

Result<void> LmdbStore::TakeDirectory() {
  std::error_code error;
  const std::filesystem::path path(options_.directory);
  // For its owner alone: what is in it tells what was written.
  if (std::filesystem::create_directories(path, error)) {
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  }
  const std::filesystem::path canonical = std::filesystem::canonical(path, error);
  if (error || !std::filesystem::is_directory(canonical)) {
    return MakeError(ErrorCode::kIo, "cannot make the store's directory '{}'{}{}",
                     options_.directory, error ? ": " : "", error ? error.message() : "");
  }
  const std::lock_guard lock(open_mutex);
  if (!OpenDirectories().insert(canonical.string()).second) {
    return MakeError(ErrorCode::kUsage, "the store in '{}' is open already", options_.directory);
  }
  registered_ = canonical.string();
  return base::Success();
}

LmdbStore::~LmdbStore() {
  if (env_ != nullptr) mdb_env_close(env_);
  const std::lock_guard lock(open_mutex);
  OpenDirectories().erase(registered_);
}

Result<void> LmdbStore::SetAside() {
  const std::filesystem::path folder(options_.directory);
  std::error_code error;
  std::filesystem::rename(folder / "data.mdb", folder / "data.mdb.damaged", error);
  if (error) {
    return MakeError(ErrorCode::kIo, "cannot set the damaged file in '{}' aside: {}",
                     options_.directory, error.message());
  }
  std::filesystem::remove(folder / "lock.mdb", error);
  set_aside_ = true;
  return base::Success();
}

std::string LmdbStore::notice() const {
  if (!set_aside_) return {};
  return "the store in '" + options_.directory +
         "' was damaged: its file is data.mdb.damaged now, and a new one is begun";
}

Result<void> LmdbStore::OpenFile() {
  const auto check = [&](int status) -> Result<void> {
    if (status == 0) return base::Success();
    return MakeError(ErrorCode::kIo, "cannot open the store in '{}': {}", options_.directory,
                     mdb_strerror(status));
  };
  const std::uint64_t limit = options_.limit_bytes;
  KV_TRY(check(mdb_env_create(&env_)));
  KV_TRY(check(mdb_env_set_maxdbs(env_, 8)));
  KV_TRY(check(mdb_env_set_mapsize(env_, limit + limit / 8 + kLmdbSlack)));
  KV_TRY(check(mdb_env_open(env_, options_.directory.c_str(), MDB_NOMETASYNC | MDB_NOTLS, 0600)));
  mdb_reader_check(env_, nullptr);
  Transaction transaction(*this, 0);
  KV_TRY(check(transaction.status()));
  for (const auto& [table_name, table] :
       {std::pair{"values", &values_}, {"uses", &uses_}, {"order", &order_}, {"meta", &meta_}}) {
    KV_TRY(check(mdb_dbi_open(transaction.get(), table_name, MDB_CREATE, table)));
  }
  return check(transaction.Commit());
}

// ------------------------------------------------------------------ reading

Result<void> LmdbStore::FaultOf(int status) const {
  if (status == 0) return base::Success();
  return MakeError(ErrorCode::kIo, "{}: {}", name_, mdb_strerror(status));
}

Result<std::vector<bool>> LmdbStore::Has(std::span<const BlockKey> keys) {
  Transaction transaction(*this, MDB_RDONLY);
  std::vector<bool> there(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    there[i] = transaction.Get(uses_, ValOf(BytesOf(keys[i]))).has_value();
  }
  KV_TRY(FaultOf(transaction.status()));
  return there;
}

Result<void> LmdbStore::Get(std::span<const BlockKey> keys, const Visit& visit) {
  Transaction transaction(*this, MDB_RDONLY);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::optional<MDB_val> value = transaction.Get(values_, ValOf(BytesOf(keys[i])));
    if (value) visit(i, {static_cast<const std::byte*>(value->mv_data), value->mv_size});
  }
  return FaultOf(transaction.status());
}

// ------------------------------------------------------------------ writing

Result<PutCounts> LmdbStore::Put(std::span<const KeyValue> values) {
  PutCounts counts;
  std::size_t begin = 0;
  while (begin < values.size()) {
    std::size_t end = begin;
    std::uint64_t bytes = 0;
    while (end < values.size() && (end == begin || bytes < kTransactionBytes)) {
      bytes += Charge(values[end++].value.size());
    }
    KV_TRY(PutTogether(values.subspan(begin, end - begin), counts));
    begin = end;
  }
  return counts;
}

// A full file has pages for nothing that is as long as a value: room is made, and once two
// transactions have passed, it can be used.
Result<void> LmdbStore::PutTogether(std::span<const KeyValue> values, PutCounts& counts) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    PutCounts ours;
    const int status = TryPut(values, ours);
    if (status == 0) {
      counts.written += ours.written;
      counts.written_bytes += ours.written_bytes;
      counts.dropped += ours.dropped;
      counts.evicted += ours.evicted;
      return base::Success();
    }
    if (status != MDB_MAP_FULL) return FaultOf(status);
    mdb_reader_check(env_, nullptr);
    KV_TRY(const std::uint64_t evicted, MakeRoom(options_.limit_bytes / 8));
    counts.evicted += evicted;
  }
  counts.dropped += values.size();
  return base::Success();
}

int LmdbStore::TryPut(std::span<const KeyValue> values, PutCounts& counts) {
  Transaction transaction(*this, 0);
  Totals totals = transaction.totals();
  for (const KeyValue& entry : values) {
    const KeyBytes key = BytesOf(entry.key);
    if (transaction.Touch(key, totals)) continue;
    const std::uint64_t bytes = Charge(entry.value.size());
    if (bytes > options_.limit_bytes) {
      ++counts.dropped;
      continue;
    }
    counts.evicted += transaction.EvictTo(options_.limit_bytes - bytes, totals);
    const Use use = {++totals.stamp, bytes};
    totals.bytes += bytes;
    transaction.Set(values_, ValOf(key),
                    {entry.value.size(), const_cast<std::byte*>(entry.value.data())});
    transaction.Set(uses_, ValOf(key), ValOf(use));
    transaction.Set(order_, ValOf(OrderOf(use.stamp, key)), MDB_val{0, nullptr});
    ++counts.written;
    counts.written_bytes += entry.value.size();
  }
  transaction.SetTotals(totals);
  return transaction.Commit();
}

Result<std::uint64_t> LmdbStore::MakeRoom(std::uint64_t bytes) {
  std::uint64_t evicted = 0;
  for (const std::uint64_t give_up : {bytes, std::uint64_t{0}}) {
    Transaction transaction(*this, 0);
    Totals totals = transaction.totals();
    const std::uint64_t left = totals.bytes - std::min(totals.bytes, give_up);
    evicted += transaction.EvictTo(left, totals);
    ++totals.stamp;  // So that the second one is a transaction too.
    transaction.SetTotals(totals);
    KV_TRY(FaultOf(transaction.Commit()));
  }
  return evicted;
}

Result<void> LmdbStore::Touch(std::span<const BlockKey> keys) {
  Transaction transaction(*this, 0);
  Totals totals = transaction.totals();
  for (const BlockKey& key : keys) transaction.Touch(BytesOf(key), totals);
  transaction.SetTotals(totals);
  return FaultOf(transaction.Commit());
}

Result<void> LmdbStore::Remove(std::span<const BlockKey> keys) {
  Transaction transaction(*this, 0);
  Totals totals = transaction.totals();
  for (const BlockKey& key : keys) transaction.Remove(BytesOf(key), totals);
  transaction.SetTotals(totals);
  return FaultOf(transaction.Commit());
}

void LmdbStore::CheckInvariants() {
  Transaction transaction(*this, MDB_RDONLY);
  MDB_cursor* cursor = nullptr;
  KV_CHECK(mdb_cursor_open(transaction.get(), order_, &cursor) == 0);
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  MDB_val at = {0, nullptr};
  while (mdb_cursor_get(cursor, &at, nullptr, MDB_NEXT) == 0) {
    KV_CHECK(at.mv_size == sizeof(OrderKey));
    OrderKey order;
    std::memcpy(&order, at.mv_data, sizeof(order));
    const auto use = transaction.Row<Use>(uses_, ValOf(order.key));
    KV_CHECK(use && std::memcmp(OrderOf(use->stamp, order.key).stamp.data(), order.stamp.data(),
                                order.stamp.size()) == 0);
    const auto value = transaction.Get(values_, ValOf(order.key));
    KV_CHECK(value && Charge(value->mv_size) == use->bytes);
    bytes += use->bytes;
    ++count;
  }
  mdb_cursor_close(cursor);
  KV_CHECK(transaction.totals().bytes == bytes && bytes <= options_.limit_bytes);
  for (const unsigned table : {values_, uses_}) {
    MDB_stat numbers;
    KV_CHECK(mdb_stat(transaction.get(), table, &numbers) == 0 && numbers.ms_entries == count);
  }
}

}  // namespace kvasir::store
