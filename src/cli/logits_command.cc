// kvasir logits -p TEXT --out F.npy: rows to compare with other programs.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/env.h"
#include "base/hash.h"
#include "cli/command.h"
#include "cli/generation.h"
#include "cli/json_output.h"
#include "eval/sequence_logits.h"
#include "formats/npy.h"

namespace kvasir::cli {
namespace {

struct LogitsFlags {
  ModelFlags model;
  std::string prompt;
  std::string out;
  std::string what = "logits";
  bool json = false;
};

base::Result<int> RunLogits(const LogitsFlags& flags) {
  KV_TRY(const OpenModel open, Open(flags.model));
  KV_TRY(const auto tokens, TokensOfArgument(open, flags.prompt, "the prompt"));
  KV_TRY(const auto logits, eval::SequenceLogits(*open.loaded.model, tokens,
                                                 {.block_tokens = flags.model.block_tokens,
                                                  .prefill_chunk = flags.model.prefill_chunk,
                                                  .kv_cache = !flags.model.no_kv_cache,
                                                  .policy = open.policy},
                                                 *open.team));
  const std::uint64_t vocab = open.loaded.model->shape().vocab;
  KV_TRY(formats::WriteNpyF32(base::Env::Default(), flags.out, {tokens.size(), vocab}, logits));
  const base::Hash128 hash = base::HashBytes128(std::as_bytes(std::span(logits)));
  const std::string digest = fmt::format("{:016x}{:016x}", hash.high, hash.low);
  if (flags.json) {
    PrintJson({{"model", open.path},
               {"what", flags.what},
               {"out", flags.out},
               {"shape", {tokens.size(), vocab}},
               {"token_ids", tokens},
               {"xxh3_128", digest}});
  } else {
    fmt::print("{}: {} rows of {} logits, f32, XXH3-128 {}\n", flags.out, tokens.size(), vocab,
               digest);
  }
  return 0;
}

}  // namespace

void AddLogitsCommand(CommandSet& commands) {
  auto flags = std::make_shared<LogitsFlags>();
  CLI::App* command = commands.Add("logits", "Write the logits of every position of a text",
                                   "kvasir logits -p 春风 --out spring.npy");
  AddModelFlags(command, flags->model);
  command->add_option("-p,--prompt", flags->prompt, "the text")->required();
  command->add_option("--out", flags->out, "the .npy file: f32 [tokens, vocabulary]")->required();
  command->add_option("--what", flags->what, "which rows (as yet: logits)")
      ->check(CLI::IsMember({"logits"}));
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunLogits(*flags); });
}

}  // namespace kvasir::cli
