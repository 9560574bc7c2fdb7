// Where blocks are kept beyond the process, as flags: of generate, serve and bench store.
#ifndef KVASIR_CLI_STORE_FLAGS_H_
#define KVASIR_CLI_STORE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/hash.h"
#include "base/result.h"
#include "store/queued_store.h"

namespace kvasir::cli {

struct StoreFlags {
  std::string address;  // Empty: no store.
  std::optional<std::uint64_t> limit;
  std::optional<std::uint64_t> queue;
  double patience_seconds = 1;
  bool compress = false;
  std::string password_file;
};

void AddStoreFlags(CLI::App* command, StoreFlags& flags);

// Null if none is asked for. A damaged file that was set aside is told on stderr.
base::Result<std::unique_ptr<store::QueuedStore>> OpenStore(const StoreFlags& flags);

// Of a model's bytes, as GGUF: what the blocks of a store belong to.
base::Result<base::Hash128> HashOfModel(const std::string& path);

nlohmann::ordered_json ToJson(const kvcache::BlockStoreStats& stats);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_STORE_FLAGS_H_
