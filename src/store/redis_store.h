// RedisStore: a store that speaks the Redis protocol, shared by machines.
#ifndef KVASIR_STORE_REDIS_STORE_H_
#define KVASIR_STORE_REDIS_STORE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/key_value.h"

struct redisContext;

namespace kvasir::store {

struct RedisOptions {
  std::string host = "127.0.0.1";
  int port = 6379;
  int database = 0;
  std::string password = {};               // Empty: none is sent.
  std::chrono::milliseconds timeout{500};  // To connect; to send and to be answered, each time.
};

// One connection for reading and one for writing, made when they are first needed and again after
// each fault. Commands of a batch are sent before their replies are read. Keys are
// "kvasir:1:NAME:GROUP", in hexadecimal; what goes first when the server's memory is used up is the
// server's matter (maxmemory-policy allkeys-lru). Values larger than kRedisMostBytes are dropped.
//
// Source: the Redis serialization protocol, version 2, by hiredis.
class RedisStore : public KeyValueStore {
 public:
  // Connects to nothing yet: a server that is down now may be up later.
  explicit RedisStore(const RedisOptions& options);
  ~RedisStore() override;
  RedisStore(const RedisStore&) = delete;
  RedisStore& operator=(const RedisStore&) = delete;

  std::string_view name() const override { return name_; }
  base::Result<std::vector<bool>> Has(std::span<const BlockKey> keys) override;
  base::Result<void> Get(std::span<const BlockKey> keys, const Visit& visit) override;
  base::Result<PutCounts> Put(std::span<const KeyValue> values) override;
  // The server notes by itself what is read.
  base::Result<void> Touch(std::span<const BlockKey>) override { return base::Success(); }
  base::Result<void> Remove(std::span<const BlockKey> keys) override;

 private:
  class Connection;  // redis_store.cc

  const RedisOptions options_;
  const std::string name_;
  const std::unique_ptr<Connection> reader_;
  const std::unique_ptr<Connection> writer_;
};

inline constexpr std::uint64_t kRedisMostBytes = std::uint64_t{512} << 20;

}  // namespace kvasir::store

#endif  // KVASIR_STORE_REDIS_STORE_H_
