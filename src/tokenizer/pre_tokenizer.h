// How byte-level vocabularies cut text into words before they merge inside each.
#ifndef KVASIR_TOKENIZER_PRE_TOKENIZER_H_
#define KVASIR_TOKENIZER_PRE_TOKENIZER_H_

#include <cstddef>
#include <optional>
#include <string_view>

namespace kvasir::tokenizer {

// Each stands for a published regular expression, which pre_tokenizer.cc follows by hand: in time
// linear in the text, without a pattern to compile.
enum class PreTokenizer {
  kGpt2,
  kLlama3,
  kQwen2,  // The text is put into normalization form C first.
};

// By its name in tokenizer.ggml.pre, aliases included; nothing for one that is not known.
std::optional<PreTokenizer> FindPreTokenizer(std::string_view name);
// The name under which it is written: "gpt-2", "llama-bpe", "qwen2".
std::string_view PreTokenizerName(PreTokenizer kind);

// Bytes of the first word of a text that is not empty and valid UTF-8. At least one character; the
// words, joined, are the text. Thread-safe.
std::size_t FirstWordBytes(PreTokenizer kind, std::string_view text);

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_PRE_TOKENIZER_H_
