#include "cli/store_flags.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <utility>
#include <variant>

#include "base/env.h"
#include "cli/number_flags.h"
#include "model/any_model_file.h"
#include "store/store_address.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;

// The first line of the file.
base::Result<std::string> ReadPassword(const std::string& path) {
  KV_TRY(const auto file, base::Env::Default().Map(path));
  const std::string_view text = file->text();
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  if (line.empty()) {
    return MakeError(ErrorCode::kBadData, "'{}' has no password in its first line", path);
  }
  return std::string(line);
}

}  // namespace

void AddStoreFlags(CLI::App* command, StoreFlags& flags) {
  command
      ->add_option("--store", flags.address,
                   "where cached blocks are kept over restarts: a directory, default (of your "
                   "cache directory), or redis://HOST[:PORT][/DATABASE]; default: nowhere")
      ->type_name("ADDRESS")
      ->check([](const std::string& text) {
        return text.empty() ? "the store's address is empty" : std::string();
      });
  AddBytes(command, "--store-limit", flags.limit, {store::kLmdbLeast, kMostBytes},
           "most bytes of a directory; the least recently used go first; default 4GiB");
  AddBytes(command, "--store-queue", flags.queue, {1, kMostBytes},
           "most bytes waiting to be written; what does not fit is dropped; default 128MiB");
  AddFloat(command, "--store-patience", flags.patience_seconds, {.min = 0.001, .max = 60},
           "seconds for a read, after which blocks are computed instead; default 1");
  command->add_flag("--store-compress", flags.compress,
                    "compress what is stored: worth it over a slow network only");
  command
      ->add_option("--store-password-file", flags.password_file,
                   "file whose first line is the server's password")
      ->type_name("FILE");
}

base::Result<std::unique_ptr<store::QueuedStore>> OpenStore(const StoreFlags& flags) {
  if (flags.address.empty()) return std::unique_ptr<store::QueuedStore>();
  KV_TRY(store::StoreAddress address, store::ParseStoreAddress(flags.address));
  const auto patience =
      std::chrono::milliseconds(static_cast<std::int64_t>(flags.patience_seconds * 1000));
  if (auto* redis = std::get_if<store::RedisOptions>(&address)) {
    if (flags.limit) {
      return MakeError(ErrorCode::kUsage,
                       "--store-limit is for a directory: what a server keeps is set there");
    }
    redis->timeout = patience;
    if (!flags.password_file.empty()) {
      KV_TRY(redis->password, ReadPassword(flags.password_file));
    }
  } else {
    if (!flags.password_file.empty()) {
      return MakeError(ErrorCode::kUsage, "--store-password-file is for a server");
    }
    auto& lmdb = std::get<store::LmdbOptions>(address);
    if (flags.limit) lmdb.limit_bytes = *flags.limit;
  }
  KV_TRY(
      auto opened,
      store::OpenStore(
          {.address = std::move(address),
           .queue = {.queue_bytes = flags.queue.value_or(store::QueuedStoreOptions{}.queue_bytes),
                     .patience = patience,
                     .compression =
                         flags.compress ? store::Compression::kOn : store::Compression::kOff}}));
  if (!opened->notice().empty()) fmt::print(stderr, "{}\n", opened->notice());
  return opened;
}

base::Result<base::Hash128> HashOfModel(const std::string& path) {
  KV_TRY(const auto file, model::OpenAnyModelFile(base::Env::Default(), path));
  return base::HashBytes128(file.bytes());
}

nlohmann::ordered_json ToJson(const kvcache::BlockStoreStats& stats) {
  return {{"hits", stats.hits},       {"misses", stats.misses},
          {"refused", stats.refused}, {"read_bytes", stats.read_bytes},
          {"written", stats.written}, {"written_bytes", stats.written_bytes},
          {"dropped", stats.dropped}, {"evicted", stats.evicted},
          {"faults", stats.faults}};
}

}  // namespace kvasir::cli
