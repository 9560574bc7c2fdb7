// What every command of the program shares: how it is registered, how it runs, how it fails.
#ifndef KVASIR_CLI_COMMAND_H_
#define KVASIR_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/thread_team.h"
#include "kvcache/cache_policy.h"
#include "model/model_file.h"

namespace kvasir::cli {

// The exit status of a command that ran: 0 done, 1 a check failed.
using Runner = std::function<base::Result<int>()>;

// Collects commands. Add… functions create a subcommand of app(), bind its flags, and call OnRun
// with what is to happen once the flags have been read.
class CommandSet {
 public:
  explicit CommandSet(CLI::App& app) : app_(app) {}
  CLI::App& app() { return app_; }
  CLI::App* Add(const std::string& name, const std::string& description,
                const std::string& example);
  void OnRun(CLI::App* command, Runner runner);
  // Runs the command that was given.
  base::Result<int> Run();

 private:
  CLI::App& app_;
  Runner chosen_;
};

// Flags of every command that runs a model.
struct ModelFlags {
  std::string model;          // Empty: $KVASIR_MODEL, else the bundled model.
  std::uint64_t threads = 0;  // 0: the physical cores.
  bool no_kv_cache = false;
  std::uint64_t block_tokens = 16;
  std::uint64_t prefill_chunk = 0;         // 0: a chosen default.
  std::optional<std::uint64_t> kv_budget;  // Bytes of K and V; where the command has --kv-budget.
  std::string kv;                          // The --kv language; empty: the full cache.
};
void AddModelFlags(CLI::App* command, ModelFlags& flags);
// --kv alone, and what it means for a model; kUsage as CachePolicy::Parse has it.
void AddPolicyFlag(CLI::App* command, std::string& spec);
base::Result<kvcache::CachePolicy> ParsePolicyFlag(const std::string& spec,
                                                   const model::ModelShape& shape);

// The model file that these flags mean: the flag, else model::DefaultModelPath.
std::string ModelPath(const ModelFlags& flags);

struct OpenModel {
  std::string path;
  model::LoadedModel loaded;
  std::unique_ptr<base::ThreadTeam> team;
  std::optional<kvcache::CachePolicy> policy;  // Of --kv, for this model; null: none was given.
};
// What reports call the cache: its policy's canonical text, or "off".
std::string CachePolicyText(const OpenModel& open, const ModelFlags& flags);

base::Result<OpenModel> Open(const ModelFlags& flags);

// Seed of a command that draws: the given one, or a random one (reported by the command).
std::uint64_t SeedOr(const std::optional<std::uint64_t>& given);

// One line on stderr, "kvasir: error: …", then the hint if there is one.
void PrintError(const base::Error& error);

// One file a command.
void AddNextCommand(CommandSet& commands);
void AddGenerateCommand(CommandSet& commands);
void AddCheckCommand(CommandSet& commands);
void AddAcrosticCommand(CommandSet& commands);
void AddVerseCommand(CommandSet& commands);
void AddDemoCommand(CommandSet& commands);
void AddTokenizeCommands(CommandSet& commands);  // tokenize, detokenize
void AddLogitsCommand(CommandSet& commands);
void AddDiffCommand(CommandSet& commands);
void AddEvalCommand(CommandSet& commands);
void AddVerifyCommand(CommandSet& commands);
void AddConvertCommand(CommandSet& commands);
void AddInspectCommand(CommandSet& commands);
void AddCorpusCommand(CommandSet& commands);
void AddBenchCommand(CommandSet& commands);
void AddCacheCommand(CommandSet& commands);  // cache plan
void AddTrainCommand(CommandSet& commands);
void AddServeCommand(CommandSet& commands);

// The whole program: parses, runs, reports an Error as one line on stderr, returns the exit status.
int Main(int argc, char** argv);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_COMMAND_H_
