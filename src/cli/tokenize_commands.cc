// kvasir tokenize TEXT, kvasir detokenize IDS: text to token ids and back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "cli/text_flags.h"
#include "tokenizer/stream_decoder.h"

namespace kvasir::cli {
namespace {

struct TokenizeFlags {
  ModelFlags model;
  std::string text;
  bool json = false;
};

struct DetokenizeFlags {
  ModelFlags model;
  std::vector<std::string> ids;
  bool json = false;
};

base::Result<int> RunTokenize(const TokenizeFlags& flags) {
  KV_TRY(const OpenModel open, Open(flags.model));
  auto ids = open.loaded.tokenizer->Encode(flags.text);
  if (!ids) {
    base::Error error = ids.error();
    error.code = base::ErrorCode::kUsage;  // The text is an argument.
    return error;
  }
  if (!flags.json) {
    fmt::print("{}\n", fmt::join(ids.value(), " "));
    return 0;
  }
  auto tokens = nlohmann::ordered_json::array();
  for (const base::TokenId id : ids.value()) {
    tokens.push_back(TokenText(open.loaded.tokenizer->vocabulary(), id));
  }
  PrintJson({{"model", open.path},
             {"text", flags.text},
             {"token_ids", ids.value()},
             {"tokens", std::move(tokens)}});
  return 0;
}

// Ids may be given one an argument or several, with blanks or commas between them.
base::Result<std::vector<base::TokenId>> ParseIds(const std::vector<std::string>& arguments) {
  std::vector<base::TokenId> ids;
  for (std::string_view rest : arguments) {
    while (true) {
      const std::size_t begin = rest.find_first_not_of(" ,");
      if (begin == std::string_view::npos) break;
      rest.remove_prefix(begin);
      const std::string_view word = rest.substr(0, rest.find_first_of(" ,"));
      KV_TRY(const std::uint64_t id,
             ParseUint("a token id", word, {0, std::numeric_limits<base::TokenId>::max()}));
      ids.push_back(static_cast<base::TokenId>(id));
      rest.remove_prefix(word.size());
    }
  }
  return ids;
}

base::Result<int> RunDetokenize(const DetokenizeFlags& flags) {
  KV_TRY(const auto ids, ParseIds(flags.ids));
  KV_TRY(const OpenModel open, Open(flags.model));
  KV_TRY(const std::string text, tokenizer::Decode(open.loaded.tokenizer->vocabulary(), ids));
  if (flags.json) {
    PrintJson({{"model", open.path}, {"token_ids", ids}, {"text", text}});
  } else {
    fmt::print("{}\n", text);
  }
  return 0;
}

}  // namespace

void AddTokenizeCommands(CommandSet& commands) {
  auto tokenize = std::make_shared<TokenizeFlags>();
  CLI::App* command =
      commands.Add("tokenize", "The token ids of a text", "kvasir tokenize 人工智能");
  AddModelFlags(command, tokenize->model);
  command->add_option("TEXT", tokenize->text, "the text")->required()->type_name("TEXT");
  command->add_flag("--json", tokenize->json, "one JSON document");
  commands.OnRun(command, [tokenize] { return RunTokenize(*tokenize); });

  auto detokenize = std::make_shared<DetokenizeFlags>();
  command = commands.Add("detokenize", "The text of token ids", "kvasir detokenize 2964 6812");
  AddModelFlags(command, detokenize->model);
  AddTexts(command, "IDS", detokenize->ids, "token ids")->required();
  command->add_flag("--json", detokenize->json, "one JSON document");
  commands.OnRun(command, [detokenize] { return RunDetokenize(*detokenize); });
}

}  // namespace kvasir::cli
