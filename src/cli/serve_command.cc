// kvasir serve: the model for many clients, over HTTP.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/env.h"
#include "base/hash.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/generation.h"
#include "cli/log_writer.h"
#include "cli/number_flags.h"
#include "cli/store_flags.h"
#include "engine/engine.h"
#include "kernels/contract.h"
#include "model/any_model_file.h"
#include "server/server.h"
#include "server/session_folder.h"

namespace kvasir::cli {
namespace {

struct ServeFlags {
  ModelFlags model;
  server::ServerOptions server;
  std::uint64_t port = 8080;
  std::string alias;
  std::string api_key_file;
  std::string config;
  std::uint64_t max_batch = 64;
  std::uint64_t step_tokens = 512;
  std::uint64_t busy_step_tokens = 256;
  double busy_step_time = 2.5;
  std::uint64_t max_waiting = 1024;
  std::uint64_t max_waiting_tokens = std::uint64_t{1} << 20;
  double deadline_seconds = 0;
  bool no_access_log = false;
  StoreFlags store;
  std::string sessions;  // Directory; empty: none.
};

struct FileFacts {
  std::string chat_template;
  base::Hash128 weights;
};

base::Result<FileFacts> ReadFileFacts(const std::string& path) {
  KV_TRY(const auto file, model::OpenAnyModelFile(base::Env::Default(), path));
  KV_TRY(const auto chat, file.metadata().OptionalString("tokenizer.chat_template"));
  return FileFacts{std::string(chat.value_or("")), base::HashBytes128(file.bytes())};
}

engine::SchedulerOptions EngineOptions(const OpenModel& open, const ServeFlags& flags,
                                       const base::Hash128& weights, store::QueuedStore* blocks) {
  engine::SchedulerOptions options;
  options.work = GeneratorOptionsOf(open, flags.model);
  options.work.max_batch = flags.max_batch;
  options.work.step_tokens = flags.step_tokens;
  options.work.weights = weights;
  options.work.store = blocks;
  options.busy_step_tokens = flags.busy_step_tokens;
  options.busy_step_time = flags.busy_step_time;
  options.waiting = {flags.max_waiting, flags.max_waiting, flags.max_waiting_tokens};
  return options;
}

base::Result<int> RunServe(CLI::App* command, ServeFlags& flags) {
  if (!flags.config.empty()) {
    KV_TRY(ApplyConfigFile(command, flags.config));
  }
  flags.server.port = static_cast<std::uint16_t>(flags.port);
  if (!flags.api_key_file.empty()) {
    KV_TRY(flags.server.keys, server::ApiKeys::Read(base::Env::Default(), flags.api_key_file));
  }
  KV_TRY(const OpenModel open, Open(flags.model));
  KV_TRY(const FileFacts facts, ReadFileFacts(open.path));
  server::ModelServiceOptions service_options;
  service_options.id = flags.alias.empty() ? open.loaded.name : flags.alias;
  service_options.chat_template = facts.chat_template;
  service_options.weights = facts.weights;
  service_options.cache_policy = CachePolicyText(open, flags.model);
  service_options.created = static_cast<std::uint64_t>(std::time(nullptr));
  service_options.deadline_seconds = flags.deadline_seconds;
  KV_TRY(const auto service,
         server::ModelService::Make(*open.loaded.model, *open.loaded.tokenizer, service_options));
  KV_TRY(const auto blocks, OpenStore(flags.store));
  KV_TRY(const auto engine,
         engine::Engine::Make(*open.loaded.model, open.loaded.tokenizer->vocabulary(), *open.team,
                              EngineOptions(open, flags, facts.weights, blocks.get())));
  if (!flags.sessions.empty()) {
    KV_TRY(base::Env::Default().MakeDirectories(flags.sessions));
    flags.server.sessions = std::make_shared<server::SessionFolder>(
        flags.sessions,
        store::SessionModel{.weights = facts.weights,
                            .contract = kernels::kContractVersion,
                            .block_tokens = static_cast<std::uint32_t>(flags.model.block_tokens),
                            .policy = CachePolicyText(open, flags.model)});
  }
  std::optional<LogWriter> log;
  if (!flags.no_access_log) {
    log.emplace(stderr);
    flags.server.log = [&log](std::string_view line) { log->Write(line); };
  }
  KV_TRY(const auto server, server::Server::Make(*service, *engine, flags.server));
  fmt::print(stderr, "serving '{}' at http://{}\n", service->id(), server->address());
  server->Run();
  return 0;
}

void AddLimits(CLI::App* command, ServeFlags& flags) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  AddUint(command, "--max-batch", flags.max_batch, {1, 4096},
          "texts written at once; more wait; default 64");
  AddUint(command, "--step-tokens", flags.step_tokens, {1, 65536},
          "most tokens computed in a step; default 512");
  AddUint(command, "--busy-step-tokens", flags.busy_step_tokens, {1, 65536},
          "the same while texts are being written; default 256");
  AddFloat(
      command, "--busy-step-time", flags.busy_step_time, {.min = 1, .max = 1000},
      "and the time of such a step, of that without prompts: how long a prompt may make a text "
      "wait; default 2.5");
  AddUint(command, "--max-waiting", flags.max_waiting, {1, kMany},
          "requests that may wait before 429 is the answer; default 1024");
  AddUint(command, "--max-waiting-tokens", flags.max_waiting_tokens, {1, kMany},
          "tokens of their prompts likewise; default 1048576");
  AddUint(command, "--max-connections", flags.server.max_connections, {1, 1000000},
          "open connections; default 4096");
  AddUint(command, "--max-body", flags.server.max_body_bytes, {1, kMany},
          "bytes of a request's body; default 2097152");
  AddUint(command, "--max-header", flags.server.max_header_bytes, {256, 1 << 20},
          "bytes of a request's header; default 16384");
  AddUint(command, "--max-unsent", flags.server.max_unsent_bytes, {1024, kMany},
          "bytes of an answer kept for a client that reads too slowly; default 1048576");
  const FloatRange seconds = {.min = 0, .max = 86400, .min_open = true};
  AddFloat(command, "--idle-seconds", flags.server.idle_seconds, seconds,
           "a connection may wait so long between requests; default 75");
  AddFloat(command, "--request-seconds", flags.server.request_seconds, seconds,
           "a request must have come in this time; default 30");
  AddFloat(command, "--write-seconds", flags.server.write_seconds, seconds,
           "a client must take what was sent in this time; default 30");
  AddFloat(command, "--drain-seconds", flags.server.drain_seconds, {.min = 0, .max = 86400},
           "answers may go on so long when the server is asked to stop; default 30");
  AddFloat(command, "--deadline-seconds", flags.deadline_seconds, {.min = 0, .max = 86400},
           "longest time for a request, after which its answer ends; default 0 = no end");
}

}  // namespace

void AddServeCommand(CommandSet& commands) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command =
      commands.Add("serve", "The model for many clients: an HTTP server like OpenAI's",
                   "kvasir serve -m models/tang-lesson.gguf --port 8080");
  AddModelFlags(command, flags->model);
  AddKvBudgetFlag(command, flags->model);
  command
      ->add_option("--host", flags->server.host,
                   "address to listen on; default 127.0.0.1, this machine alone")
      ->type_name("ADDRESS");
  AddUint(command, "--port", flags->port, {0, std::numeric_limits<std::uint16_t>::max()},
          "default 8080; 0 = any free one");
  command->add_option("--alias", flags->alias, "the model's name; default: what its file says")
      ->type_name("NAME");
  command
      ->add_option("--api-key-file", flags->api_key_file,
                   "file with an API key a line; default: everybody may ask")
      ->type_name("FILE");
  command
      ->add_option("--cors-origin", flags->server.cors_origin,
                   "origin whose pages browsers may let ask, or *; default: none")
      ->type_name("ORIGIN");
  command
      ->add_option("--config", flags->config,
                   "file of these settings, one a line: port = 8080; flags given here win")
      ->type_name("FILE");
  AddStoreFlags(command, flags->store);
  command
      ->add_option("--sessions", flags->sessions,
                   "directory in which POST /v1/sessions/NAME keeps texts; default: none are kept")
      ->type_name("DIR");
  command->add_flag("--no-access-log", flags->no_access_log,
                    "no line on stderr for each request (they never hold prompts)");
  AddLimits(command, *flags);
  commands.OnRun(command, [command, flags] { return RunServe(command, *flags); });
}

}  // namespace kvasir::cli
