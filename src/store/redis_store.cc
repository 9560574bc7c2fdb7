#include "store/redis_store.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace kvasir::store {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

// Replies asked for before the first is read: bounds what the server must hold for us.
constexpr std::size_t kPipeline = 16;
constexpr std::size_t kPipelineShort = 1024;  // Where replies are numbers.

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
struct FreeContext {
  void operator()(redisContext* context) const { redisFree(context); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

timeval TimevalOf(std::chrono::milliseconds time) {
  return {.tv_sec = static_cast<time_t>(time.count() / 1000),
          .tv_usec = static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

std::string KeyText(const BlockKey& key) {
  return fmt::format("kvasir:1:{:016x}{:016x}:{:x}", key.name.high, key.name.low, key.group);
}

}  // namespace

// Owned by one thread. Any fault closes it; the next command connects again.
class RedisStore::Connection {
 public:
  Connection(const RedisOptions& options, std::string_view name) : options_(options), name_(name) {}

  // Queues a command; its reply comes with Next.
  template <typename... Words>
  Result<void> Send(const Words&... words) {
    KV_TRY(Connect());
    const std::array<std::string_view, sizeof...(words)> all = {words...};
    std::array<const char*, sizeof...(words)> data;
    std::array<std::size_t, sizeof...(words)> sizes;
    for (std::size_t i = 0; i < all.size(); ++i) {
      data[i] = all[i].data();
      sizes[i] = all[i].size();
    }
    if (redisAppendCommandArgv(context_.get(), static_cast<int>(data.size()), data.data(),
                               sizes.data()) != REDIS_OK) {
      return Fault();
    }
    return base::Success();
  }
  // The next reply, of this type or, if `or_nil`, null for nil.
  Result<Reply> Next(int type, bool or_nil = false) {
    void* raw = nullptr;
    if (!context_ || redisGetReply(context_.get(), &raw) != REDIS_OK) return Fault();
    Reply reply(static_cast<redisReply*>(raw));
    if (reply->type == type) return reply;
    if (or_nil && reply->type == REDIS_REPLY_NIL) return Reply();
    const std::string said = reply->type == REDIS_REPLY_ERROR
                                 ? std::string(reply->str, reply->len)
                                 : fmt::format("a reply of type {}", reply->type);
    context_.reset();
    return MakeError(ErrorCode::kIo, "{}: {}", name_, said);
  }
  // Sends one command a key, in groups, and hands each reply to take(index, reply).
  template <typename Take>
  Result<void> ForEach(std::span<const BlockKey> keys, std::string_view command,
                       std::size_t pipeline, int type, const Take& take) {
    for (std::size_t begin = 0; begin < keys.size(); begin += pipeline) {
      const std::size_t end = std::min(keys.size(), begin + pipeline);
      for (std::size_t i = begin; i < end; ++i) {
        KV_TRY(Send(command, KeyText(keys[i])));
      }
      for (std::size_t i = begin; i < end; ++i) {
        KV_TRY(const Reply reply, Next(type, true));
        if (reply) take(i, *reply);
      }
    }
    return base::Success();
  }

 private:
  Result<void> Connect() {
    if (context_) return base::Success();
    context_.reset(
        redisConnectWithTimeout(options_.host.c_str(), options_.port, TimevalOf(options_.timeout)));
    if (!context_ || context_->err != 0) return Fault();
    redisSetTimeout(context_.get(), TimevalOf(options_.timeout));
    if (!options_.password.empty()) {
      KV_TRY(Send("AUTH", options_.password));
      KV_TRY(Next(REDIS_REPLY_STATUS));
    }
    if (options_.database != 0) {
      KV_TRY(Send("SELECT", std::to_string(options_.database)));
      KV_TRY(Next(REDIS_REPLY_STATUS));
    }
    return base::Success();
  }
  base::Error Fault() {
    const std::string what = context_ ? std::string(context_->errstr) : std::string("no memory");
    context_.reset();
    return MakeError(ErrorCode::kIo, "{}: {}", name_, what);
  }

  const RedisOptions& options_;
  const std::string_view name_;
  std::unique_ptr<redisContext, FreeContext> context_;
};

RedisStore::RedisStore(const RedisOptions& options)
    : options_(options),
      name_(fmt::format("Redis at {}:{}", options.host, options.port)),
      reader_(std::make_unique<Connection>(options_, name_)),
      writer_(std::make_unique<Connection>(options_, name_)) {}

RedisStore::~RedisStore() = default;

Result<std::vector<bool>> RedisStore::Has(std::span<const BlockKey> keys) {
  std::vector<bool> there(keys.size());
  KV_TRY(reader_->ForEach(
      keys, "EXISTS", kPipelineShort, REDIS_REPLY_INTEGER,
      [&](std::size_t i, const redisReply& reply) { there[i] = reply.integer != 0; }));
  return there;
}

Result<void> RedisStore::Get(std::span<const BlockKey> keys, const Visit& visit) {
  return reader_->ForEach(keys, "GET", kPipeline, REDIS_REPLY_STRING,
                          [&](std::size_t i, const redisReply& reply) {
                            visit(i, std::as_bytes(std::span(reply.str, reply.len)));
                          });
}

Result<PutCounts> RedisStore::Put(std::span<const KeyValue> values) {
  std::vector<BlockKey> keys;
  for (const KeyValue& entry : values) keys.push_back(entry.key);
  std::vector<bool> there(keys.size());
  // Asking what is there is cheaper than sending it again; it is a use, too.
  KV_TRY(writer_->ForEach(
      keys, "TOUCH", kPipelineShort, REDIS_REPLY_INTEGER,
      [&](std::size_t i, const redisReply& reply) { there[i] = reply.integer != 0; }));
  PutCounts counts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (there[i]) continue;
    const std::span<const std::byte> value = values[i].value;
    if (value.size() > kRedisMostBytes) {
      ++counts.dropped;
      continue;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(value.data()), value.size());
    KV_TRY(writer_->Send("SET", KeyText(keys[i]), bytes));
    KV_TRY(writer_->Next(REDIS_REPLY_STATUS));
    ++counts.written;
    counts.written_bytes += value.size();
  }
  return counts;
}

Result<void> RedisStore::Remove(std::span<const BlockKey> keys) {
  return writer_->ForEach(keys, "DEL", kPipelineShort, REDIS_REPLY_INTEGER,
                          [](std::size_t, const redisReply&) {});
}

}  // namespace kvasir::store
