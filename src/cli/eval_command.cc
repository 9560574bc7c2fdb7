// kvasir eval TEXTFILE: how well a model predicts a text.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/env.h"
#include "cli/command.h"
#include "cli/eval_verse.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "engine/request.h"
#include "eval/perplexity.h"

namespace kvasir::cli {
namespace {

struct EvalFlags {
  ModelFlags model;
  std::string file;
  std::uint64_t stride = 0;
  EvalVerseFlags verse;
  bool per_token = false;
  bool json = false;
};

nlohmann::ordered_json ToJson(const OpenModel& open, const eval::Perplexity& result,
                              bool per_token) {
  nlohmann::ordered_json json = {{"model", open.path},
                                 {"tokens", result.tokens},
                                 {"nll", result.nll},
                                 {"perplexity", result.perplexity},
                                 {"bits_per_char", result.bits_per_char},
                                 {"characters", result.characters}};
  if (per_token) {
    auto list = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < result.tokens; ++i) {
      const auto id = result.text_tokens[i + 1];
      list.push_back({{"position", i + 1},
                      {"token", TokenText(open.loaded.tokenizer->vocabulary(), id)},
                      {"id", id},
                      {"nll", result.token_nll[i]}});
    }
    json["per_token"] = std::move(list);
  }
  return json;
}

void PrintText(const OpenModel& open, const eval::Perplexity& result, bool per_token) {
  if (per_token) {
    fmt::print("position\tid\ttoken\tnll\n");
    for (std::size_t i = 0; i < result.tokens; ++i) {
      const auto id = result.text_tokens[i + 1];
      fmt::print("{}\t{}\t{}\t{:.9g}\n", i + 1, id,
                 OneLine(TokenText(open.loaded.tokenizer->vocabulary(), id)), result.token_nll[i]);
    }
    return;
  }
  fmt::print("tokens predicted    {}\n", result.tokens);
  fmt::print("mean NLL            {:.5f} nats a token\n", result.nll);
  fmt::print("perplexity          {:.4f}\n", result.perplexity);
  fmt::print("bits per character  {:.4f}\n", result.bits_per_char);
}

base::Error InFile(const std::string& file, base::Error error) {
  if (error.code == base::ErrorCode::kBadData) {
    error.message = fmt::format("'{}': {}", file, error.message);
  }
  return error;
}

base::Result<int> RunEval(const EvalFlags& flags) {
  KV_TRY(const auto file, base::Env::Default().Map(flags.file));
  if (file->bytes().empty()) {
    return base::MakeError(base::ErrorCode::kBadData,
                           "'{}' is empty; a text of at least 2 tokens is needed", flags.file);
  }
  if (flags.verse.samples != 0 && (flags.per_token || flags.stride != 0)) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "--verse goes with neither --per-token nor --stride");
  }
  KV_TRY(const OpenModel open, Open(flags.model));
  if (flags.verse.samples != 0) {
    auto scored = RunEvalVerse(open, flags.model, flags.verse, file->text(), flags.json);
    return scored ? scored : InFile(flags.file, scored.error());
  }
  eval::PerplexityOptions options;
  options.stride = flags.stride;
  options.arrangement = {.block_tokens = flags.model.block_tokens,
                         .prefill_chunk = flags.model.prefill_chunk,
                         .kv_cache = !flags.model.no_kv_cache,
                         .policy = open.policy};
  auto result = eval::EvaluateText(*open.loaded.model, *open.loaded.tokenizer, file->text(),
                                   options, *open.team);
  if (!result) return InFile(flags.file, result.error());
  if (flags.json) {
    PrintJson(ToJson(open, result.value(), flags.per_token));
  } else {
    PrintText(open, result.value(), flags.per_token);
  }
  return 0;
}

}  // namespace

void AddEvalCommand(CommandSet& commands) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = commands.Add("eval", "How well the model predicts a text: loss, perplexity",
                                   "kvasir eval tang.val.txt --json");
  AddModelFlags(command, flags->model);
  command
      ->add_option("TEXTFILE", flags->file,
                   "UTF-8 text; its own tokens are counted, with no start token in front")
      ->required();
  AddUint(command, "--stride", flags->stride, {1, std::uint64_t{1} << 32},
          "tokens between the starts of two windows; default: the context, no overlap");
  command->add_flag("--per-token", flags->per_token, "the loss of each token");
  AddUint(command, "--verse", flags->verse.samples, {1, engine::kMaxChoices},
          "draw N free samples and tell how many keep form, tones and rhyme of verse, beside the "
          "file's poems, one a line");
  AddUint(command, "--seed", flags->verse.seed, {},
          "fixes the samples of --verse; default: a random one, reported on stderr");
  command
      ->add_option("--corpus", flags->verse.corpus,
                   "with --verse: tell the longest run that stands in this text")
      ->type_name("FILE");
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunEval(*flags); });
}

}  // namespace kvasir::cli
