// JSON and token texts on stdout, for every command.
#ifndef KVASIR_CLI_JSON_OUTPUT_H_
#define KVASIR_CLI_JSON_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tokenizer/token_text.h"

namespace kvasir::cli {

// One document and a newline. Text that is not UTF-8 is written with U+FFFD.
void PrintJson(const nlohmann::ordered_json& json);
// The same on one line, without the newline.
std::string DumpLine(const nlohmann::ordered_json& json);

using tokenizer::TokenText;

// The text with control characters and backslashes escaped, so that it stays on its line.
std::string OneLine(std::string_view text);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_JSON_OUTPUT_H_
