#include "store/store_address.h"

#include <charconv>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace kvasir::store {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::string_view kRedis = "redis://";

Result<int> NumberOf(std::string_view text, int least, int most, std::string_view what) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    return MakeError(ErrorCode::kUsage, "the store's {} is '{}': it must be {} to {}", what, text,
                     least, most);
  }
  return number;
}

Result<StoreAddress> ParseRedis(std::string_view text) {
  RedisOptions options;
  std::string_view rest = text.substr(kRedis.size());
  if (rest.find('@') != std::string_view::npos) {
    return base::WithHint(
        MakeError(ErrorCode::kUsage, "the store's address holds a user or password"),
        "put the password into a file of its own, and name it with --store-password-file");
  }
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    const std::string_view database = rest.substr(slash + 1);
    if (!database.empty()) {
      KV_TRY(options.database, NumberOf(database, 0, 1 << 20, "database"));
    }
    rest = rest.substr(0, slash);
  }
  std::string_view port;
  if (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos || (close + 1 < rest.size() && rest[close + 1] != ':')) {
      return MakeError(ErrorCode::kUsage, "the store's address '{}' has no host in [ ]", text);
    }
    options.host = rest.substr(1, close - 1);
    if (close + 1 < rest.size()) port = rest.substr(close + 2);
    if (close + 1 < rest.size() && port.empty()) port = "?";
  } else {
    const std::size_t colon = rest.find(':');
    options.host = rest.substr(0, colon);
    if (colon != std::string_view::npos) {
      port = rest.substr(colon + 1);
      if (port.empty()) port = "?";
    }
  }
  if (options.host.empty()) {
    return MakeError(ErrorCode::kUsage, "the store's address '{}' names no host", text);
  }
  if (!port.empty()) {
    KV_TRY(options.port, NumberOf(port, 1, 65535, "port"));
  }
  return StoreAddress(options);
}

Result<std::string> DefaultDirectory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::string(cache) + "/kvasir/store";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::string(home) + "/.cache/kvasir/store";
  }
  return MakeError(ErrorCode::kUsage,
                   "there is no default store: neither XDG_CACHE_HOME nor HOME names a directory");
}

}  // namespace

Result<StoreAddress> ParseStoreAddress(std::string_view text) {
  if (text.starts_with(kRedis)) return ParseRedis(text);
  if (text.empty()) return MakeError(ErrorCode::kUsage, "the store's address is empty");
  if (text.find("://") != std::string_view::npos) {
    return MakeError(ErrorCode::kUsage,
                     "there is no store '{}': it is redis://HOST[:PORT][/DATABASE], default, or a "
                     "directory",
                     text);
  }
  LmdbOptions options = {.directory = std::string(text)};
  if (text == "default") {
    KV_TRY(options.directory, DefaultDirectory());
  }
  return StoreAddress(options);
}

Result<std::unique_ptr<QueuedStore>> OpenStore(const StoreSettings& settings) {
  if (const auto* redis = std::get_if<RedisOptions>(&settings.address)) {
    return QueuedStore::Make(std::make_unique<RedisStore>(*redis), settings.queue);
  }
  KV_TRY(auto lmdb, LmdbStore::Open(std::get<LmdbOptions>(settings.address)));
  return QueuedStore::Make(std::move(lmdb), settings.queue);
}

}  // namespace kvasir::store
