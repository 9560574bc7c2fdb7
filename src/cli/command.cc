#include "cli/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <sstream>
#include <system_error>
#include <vector>

#include "base/env.h"
#include "base/fp_env.h"
#include "base/random_seed.h"
#include "base/utf8.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "cli/stdout_stream.h"
#include "eval/verify.h"
#include "kernels/targets.h"
#include "model/default_model.h"

namespace kvasir::cli {
namespace {

using base::Error;
using base::ErrorCode;
using base::MakeError;

constexpr std::uint64_t kMaxThreads = 1024;

constexpr std::size_t kMaxMessage = 1000;  // bytes: what was typed may be long

// Valid UTF-8 without line breaks, not too long.
std::string Shown(std::string_view text) {
  const bool cut = text.size() > kMaxMessage;
  std::string out = base::ReplaceInvalidUtf8(text.substr(0, kMaxMessage)) + (cut ? "…" : "");
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return out;
}

// A closed standard stream must not be taken over by the next file that is opened.
void OccupyStandardStreams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (fcntl(stream, F_GETFD) == -1) static_cast<void>(open("/dev/null", O_RDONLY));
  }
}

void AddCommands(CommandSet& commands) {
  AddDemoCommand(commands);
  AddNextCommand(commands);
  AddGenerateCommand(commands);
  AddCheckCommand(commands);
  AddAcrosticCommand(commands);
  AddVerseCommand(commands);
  AddTokenizeCommands(commands);
  AddLogitsCommand(commands);
  AddDiffCommand(commands);
  AddEvalCommand(commands);
  AddConvertCommand(commands);
  AddInspectCommand(commands);
  AddCorpusCommand(commands);
  AddTrainCommand(commands);
  AddServeCommand(commands);
  AddVerifyCommand(commands);
  AddBenchCommand(commands);
  AddCacheCommand(commands);
}

// Parses and runs. CLI11 reports by exceptions: they end here.
base::Result<int> ParseAndRun(int argc, char** argv) {
  CLI::App app(
      "Kvasir trains small language models, generates from them under control, and shows "
      "what a KV cache does: it never changes the answer.",
      "kvasir");
  app.footer(
      "Each command has its own --help. Example:\n  kvasir generate -p 春风 --max-tokens 32");
  app.set_version_flag("--version", fmt::format("kvasir {}, numerics contract {}", KVASIR_VERSION,
                                                eval::kContractVersion));
  app.require_subcommand(0, 1);  // That there is one is checked below, to name what is none.
  CommandSet commands(app);
  AddCommands(commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help
    std::ostringstream out;
    app.exit(success, out, out);
    fmt::print("{}", out.str());
    return 0;
  } catch (const CLI::ParseError& error) {
    std::string path;  // Of the command, which may be one of another's.
    for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
      at = at->get_subcommands().front();
      path += at->get_name() + " ";
    }
    if (path.empty() && argc > 1 && argv[1][0] != '-') {
      return base::WithHint(MakeError(ErrorCode::kUsage, "there is no command '{}'", argv[1]),
                            "kvasir --help lists them");
    }
    return base::WithHint(MakeError(ErrorCode::kUsage, "{}", error.what()),
                          fmt::format("kvasir {}--help tells what is allowed", path));
  }
  if (app.get_subcommands().empty()) {
    return base::WithHint(MakeError(ErrorCode::kUsage, "a command is needed"),
                          "kvasir --help lists them");
  }
  return commands.Run();
}

}  // namespace

void PrintError(const Error& error) {
  std::string text = fmt::format("kvasir: error: {}\n", Shown(error.message));
  if (!error.hint.empty()) text += fmt::format("hint: {}\n", Shown(error.hint));
  std::fputs(text.c_str(), stderr);  // Where stderr itself fails there is nobody left to tell.
}

CLI::App* CommandSet::Add(const std::string& name, const std::string& description,
                          const std::string& example) {
  CLI::App* command = app_.add_subcommand(name, description);
  command->footer("Example:\n  " + example);
  return command;
}

void CommandSet::OnRun(CLI::App* command, Runner runner) {
  command->callback([this, runner = std::move(runner)] { chosen_ = runner; });
}

base::Result<int> CommandSet::Run() {
  KV_CHECK(chosen_ != nullptr);
  return chosen_();
}

void AddModelFlags(CLI::App* command, ModelFlags& flags) {
  command
      ->add_option("-m,--model", flags.model,
                   "model file (GGUF); default: $KVASIR_MODEL, else the bundled model")
      ->type_name("FILE");
  AddUint(command, "--threads", flags.threads, {1, kMaxThreads},
          "threads of a step; default: the physical cores");
  command->add_flag("--no-kv-cache", flags.no_kv_cache,
                    "recompute every position at every step: the same bits, slower");
  AddUint(command, "--block-tokens", flags.block_tokens, {16, 256},
          "positions in a block of the cache: a multiple of 16; default 16");
  AddUint(command, "--prefill-chunk", flags.prefill_chunk, {1, std::uint64_t{1} << 32},
          "most prompt tokens of a text computed in one step; default: as many as fit");
  AddPolicyFlag(command, flags.kv);
}

void AddPolicyFlag(CLI::App* command, std::string& spec) {
  command
      ->add_option("--kv", spec,
                   "what the cache keeps of each layer and head, and what a token sees of it: "
                   "rules such as dtype=f16 or 2-3:window=64,sinks=4, separated by ; default: "
                   "full,dtype=f32")
      ->type_name("SPEC")
      ->check([](const std::string& text) {
        return text.empty() ? "the cache policy is empty" : std::string();
      });
}

base::Result<kvcache::CachePolicy> ParsePolicyFlag(const std::string& spec,
                                                   const model::ModelShape& shape) {
  auto policy = kvcache::CachePolicy::Parse(spec, shape.Policy());
  if (!policy) return MakeError(policy.error().code, "--kv: {}", policy.error().message);
  return policy;
}

std::string ModelPath(const ModelFlags& flags) {
  return flags.model.empty() ? model::DefaultModelPath() : flags.model;
}

base::Result<OpenModel> Open(const ModelFlags& flags) {
  if (flags.block_tokens % 16 != 0) {
    return MakeError(ErrorCode::kUsage, "--block-tokens is {}: it must be 16, 32, … 256",
                     flags.block_tokens);
  }
  const std::string path = ModelPath(flags);
  auto loaded = model::LoadModel(base::Env::Default(), path);
  if (!loaded) {
    if (loaded.error().code != ErrorCode::kIo) return loaded.error();
    return base::WithHint(loaded.error(), "name a model with -m FILE or KVASIR_MODEL=FILE");
  }
  const std::size_t threads =
      flags.threads != 0 ? flags.threads : base::ThreadTeam::PhysicalCores();
  KV_TRY(auto team, base::ThreadTeam::Make(threads));
  OpenModel open = {path, std::move(loaded.value()), std::move(team), std::nullopt};
  if (flags.kv.empty()) return open;
  KV_TRY(open.policy, ParsePolicyFlag(flags.kv, open.loaded.model->shape()));
  return open;
}

std::string CachePolicyText(const OpenModel& open, const ModelFlags& flags) {
  if (open.policy) return open.policy->Canonical();
  return flags.no_kv_cache ? "off" : kvcache::PolicyOptions({});
}

std::uint64_t SeedOr(const std::optional<std::uint64_t>& given) {
  return given ? *given : base::RandomSeed();
}

int Main(int argc, char** argv) {
  OccupyStandardStreams();
  // A reader that went away and a limit on the size of files are errors to report, not silent
  // deaths.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  base::SetContractFpEnv();
  const auto run = [&]() -> base::Result<int> {
    KV_TRY(kernels::CheckProcessor());
    try {
      KV_TRY(const int status, ParseAndRun(argc, argv));
      KV_TRY(FlushStdout());
      return status;
    } catch (const std::system_error& error) {  // {fmt}, when stdout takes no more
      return MakeError(ErrorCode::kIo, "cannot write to the standard output: {}",
                       error.code().message());
    } catch (const std::bad_alloc&) {
      return MakeError(ErrorCode::kExhausted, "out of memory");
    }
  };
  const base::Result<int> result = run();
  if (result) return result.value();
  PrintError(result.error());
  return result.error().code == ErrorCode::kUsage ? 2 : 1;
}

}  // namespace kvasir::cli
