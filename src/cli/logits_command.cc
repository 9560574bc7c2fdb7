// kvasir logits -p TEXT --out F.npy: rows, and what they are made of, to compare with other
// programs.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/hash.h"
#include "cli/command.h"
#include "cli/generation.h"
#include "cli/json_output.h"
#include "eval/sequence_dump.h"
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
  const eval::DumpKind kind = eval::DumpKindNamed(flags.what).value();  // As CLI11 has checked.
  KV_TRY(const auto values, eval::DumpSequence(*open.loaded.model, kind, tokens,
                                               {.block_tokens = flags.model.block_tokens,
                                                .prefill_chunk = flags.model.prefill_chunk,
                                                .kv_cache = !flags.model.no_kv_cache,
                                                .policy = open.policy},
                                               *open.team));
  KV_TRY(const auto shape, eval::DumpShape(open.loaded.model->shape(), kind, tokens.size()));
  KV_TRY(formats::WriteNpyF32(base::Env::Default(), flags.out, shape, values));
  const base::Hash128 hash = base::HashBytes128(std::as_bytes(std::span(values)));
  const std::string digest = fmt::format("{:016x}{:016x}", hash.high, hash.low);
  if (flags.json) {
    PrintJson({{"model", open.path},
               {"what", flags.what},
               {"out", flags.out},
               {"shape", std::vector(shape.dims().begin(), shape.dims().end())},
               {"token_ids", tokens},
               {"xxh3_128", digest}});
  } else {
    fmt::print("{}: {} {}, f32, XXH3-128 {}\n", flags.out, flags.what, shape.ToString(), digest);
  }
  return 0;
}

}  // namespace

void AddLogitsCommand(CommandSet& commands) {
  auto flags = std::make_shared<LogitsFlags>();
  CLI::App* command =
      commands.Add("logits", "Write the logits of every position of a text, or what leads to them",
                   "kvasir logits -p 春风 --out spring.npy --what attention");
  AddModelFlags(command, flags->model);
  command->add_option("-p,--prompt", flags->prompt, "the text")->required();
  command->add_option("--out", flags->out, "the .npy file: f32, C order")->required();
  command
      ->add_option("--what", flags->what,
                   "logits [tokens, vocabulary]; hidden [layers + 1, tokens, embedding]: the "
                   "residual stream into each layer, then the final norm's result; attention "
                   "[layers, heads, tokens, tokens]: weights, by query and position; k, v [layers, "
                   "kv heads, tokens, head size]: as the query at the same position reads them (of "
                   "a cache of latents, one kv head: k the whole entry, v its latent)")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(eval::kDumpNames), std::end(eval::kDumpNames))));
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunLogits(*flags); });
}

}  // namespace kvasir::cli
