// kvasir next TEXT…: the most probable next tokens of each text.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/generation.h"
#include "cli/json_output.h"
#include "cli/next_table.h"
#include "cli/number_flags.h"
#include "cli/text_flags.h"

namespace kvasir::cli {
namespace {

struct NextFlags {
  ModelFlags model;
  std::vector<std::string> texts;
  std::uint64_t k = 8;
  bool json = false;
};

base::Result<int> RunNext(const NextFlags& flags) {
  KV_TRY(const OpenModel open, Open(flags.model));
  const std::uint64_t vocab = open.loaded.model->shape().vocab;
  if (flags.k > vocab) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "-k is {}: the model's vocabulary has only {} tokens", flags.k, vocab);
  }
  std::vector<std::vector<sampling::TokenLogProb>> tables;
  for (const std::string& text : flags.texts) {
    KV_TRY(auto table, NextTokens(open, GeneratorOptionsOf(open, flags.model), text, flags.k));
    tables.push_back(std::move(table));
  }
  const tokenizer::Vocabulary& vocabulary = open.loaded.tokenizer->vocabulary();
  auto results = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (!flags.json) {
      fmt::print("{}{}\n{}", i == 0 ? "" : "\n", OneLine(flags.texts[i]),
                 FormatNextTable(vocabulary, tables[i]));
      continue;
    }
    auto top = nlohmann::ordered_json::array();
    for (const sampling::TokenLogProb& token : tables[i]) {
      top.push_back({{"token", TokenText(vocabulary, token.id)},
                     {"id", token.id},
                     {"prob", token.prob},
                     {"logprob", token.logprob}});
    }
    results.push_back({{"text", flags.texts[i]}, {"top", std::move(top)}});
  }
  if (flags.json) PrintJson({{"model", open.path}, {"results", std::move(results)}});
  return 0;
}

}  // namespace

void AddNextCommand(CommandSet& commands) {
  auto flags = std::make_shared<NextFlags>();
  CLI::App* command = commands.Add("next", "The most probable next tokens of each text",
                                   "kvasir next 白日依山尽，黄河入海 春风 -k 8");
  AddModelFlags(command, flags->model);
  AddTexts(command, "TEXT", flags->texts, "one or more texts")->required();
  AddUint(command, "-k,--top", flags->k, {1, std::uint64_t{1} << 32}, "how many; default 8");
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunNext(*flags); });
}

}  // namespace kvasir::cli
