// StoreAddress: what --store names.
#ifndef KVASIR_STORE_STORE_ADDRESS_H_
#define KVASIR_STORE_STORE_ADDRESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "store/lmdb_store.h"
#include "store/queued_store.h"
#include "store/redis_store.h"

namespace kvasir::store {

// Either a directory or a server.
using StoreAddress = std::variant<LmdbOptions, RedisOptions>;

// ADDRESS := redis://HOST[:PORT][/DATABASE] | default | DIRECTORY
// HOST is a name, an IPv4 address, or an IPv6 address in brackets. default is the directory
// kvasir/store of the user's cache: in $XDG_CACHE_HOME, else in $HOME/.cache. kUsage otherwise,
// naming what is wrong; a password in an address is refused, since other users of the machine see
// the arguments of programs.
base::Result<StoreAddress> ParseStoreAddress(std::string_view text);

struct StoreSettings {
  StoreAddress address;
  QueuedStoreOptions queue = {};
};

// An LMDB file that is there or can be made; a server need not answer yet.
base::Result<std::unique_ptr<QueuedStore>> OpenStore(const StoreSettings& settings);

}  // namespace kvasir::store

#endif  // KVASIR_STORE_STORE_ADDRESS_H_
