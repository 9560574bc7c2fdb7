// The most probable next tokens of a text, and a table of them.
#ifndef KVASIR_CLI_NEXT_TABLE_H_
#define KVASIR_CLI_NEXT_TABLE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "engine/generator.h"
#include "sampling/log_probs.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::cli {

// The k best after text, in descending probability; an empty text starts as a prompt does. Errors
// name the text where it is at fault; kNumeric names the position.
base::Result<std::vector<sampling::TokenLogProb>> NextTokens(
    const OpenModel& open, const engine::GeneratorOptions& options, const std::string& text,
    std::size_t k);

// One line a token: its text, its probability in percent, its id; columns align in a terminal.
std::string FormatNextTable(const tokenizer::Vocabulary& vocabulary,
                            std::span<const sampling::TokenLogProb> tokens);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_NEXT_TABLE_H_
