#include "cli/next_table.h"

#include <fmt/format.h>

#include "cli/generation.h"
#include "cli/json_output.h"
#include "cli/terminal_text.h"
#include "engine/last_logits.h"

namespace kvasir::cli {

base::Result<std::vector<sampling::TokenLogProb>> NextTokens(
    const OpenModel& open, const engine::GeneratorOptions& options, const std::string& text,
    std::size_t k) {
  KV_TRY(const auto tokens, TokensOfArgument(open, text, "the text"));
  KV_TRY(const auto logits, engine::LastLogits(*open.loaded.model, tokens, options, *open.team));
  auto top = sampling::TopLogProbs(logits, k);
  if (top || top.error().code != base::ErrorCode::kNumeric) return top;
  base::Error error = top.error();
  error.message = fmt::format("after position {}: {}", tokens.size() - 1, error.message);
  return error;
}

std::string FormatNextTable(const tokenizer::Vocabulary& vocabulary,
                            std::span<const sampling::TokenLogProb> tokens) {
  constexpr std::size_t kTokenColumns = 8;
  std::string table;
  for (const sampling::TokenLogProb& token : tokens) {
    table += fmt::format("  {} {:6.2f} %  id {}\n",
                         PadRight(Visible(TokenText(vocabulary, token.id)), kTokenColumns),
                         100.0 * token.prob, token.id);
  }
  return table;
}

}  // namespace kvasir::cli
