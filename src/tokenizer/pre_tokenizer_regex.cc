#include "tokenizer/pre_tokenizer_regex.h"

namespace kvasir::tokenizer {

// Source: the files published with GPT-2, Llama 3 and Qwen2. The last two differ in how many digits
// a word may have.
std::string_view PreTokenizerRegex(PreTokenizer kind) {
  switch (kind) {
    case PreTokenizer::kGpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case PreTokenizer::kLlama3:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
             R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case PreTokenizer::kQwen2:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
             R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  }
  return "";
}

std::optional<PreTokenizer> FindPreTokenizerByRegex(std::string_view regex) {
  for (const PreTokenizer kind :
       {PreTokenizer::kGpt2, PreTokenizer::kLlama3, PreTokenizer::kQwen2}) {
    if (regex == PreTokenizerRegex(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace kvasir::tokenizer
