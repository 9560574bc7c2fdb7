// Reads tokenizer.json, the files of Hugging Face's tokenizers: untrusted text in, a checked
// description out.
//
// Source: the serialisation of that library, version "1.0", of which byte-pair encodings are read
// whose steps are among those below. A step or setting that would cut or join a text in another way
// is refused by its name. Not part of an encoding, and not looked at: truncation, padding, the pair
// template, trim_offsets, fuse_unk.
#ifndef KVASIR_FORMATS_TOKENIZER_JSON_H_
#define KVASIR_FORMATS_TOKENIZER_JSON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "formats/json_document.h"

namespace kvasir::formats {

// What is done to a text before it is cut.
enum class TextNormalizer {
  kNone,
  kNfc,        // Unicode's normalization form C.
  kSpaces,     // A space becomes ▁ (U+2581).
  kLedSpaces,  // A text is led by ▁, then as kSpaces.
};

struct JsonToken {
  std::uint32_t id = 0;
  std::string_view text;
};

struct AddedToken {
  std::uint32_t id = 0;
  std::string_view text;
  bool special = false;
  bool normalized = false;  // It is looked for in the normalized text.
};

// Views into the file's text, which it owns; movable. Immutable, so thread-safe.
// Invariants: ids of `tokens` are unique, and so are their texts; ids of `added` are unique, and
// where one is in tokens too the texts are equal.
struct TokenizerJson {
  JsonDocument document;
  std::vector<JsonToken> tokens;  // model.vocab, ascending by id.
  // Of two tokens, the best merge first; read from both spellings, "a b" and ["a","b"].
  std::vector<std::pair<std::string_view, std::string_view>> merges;
  std::vector<AddedToken> added;  // Ascending by id.
  std::optional<std::string_view> unknown;
  bool byte_fallback = false;
  bool ignore_merges = false;  // A word that is a token is that token, whatever the merges say.
  TextNormalizer normalizer = TextNormalizer::kNone;
  // How a text is cut into words: by this regular expression, bytes written as characters
  // (ByteLevel); or not at all if there is none.
  std::optional<std::string_view> word_regex;
  // What a template adds in front of a text and behind it.
  std::optional<std::uint32_t> first, last;
};

// GPT-2's regular expression, which ByteLevel stands for unless use_regex is false.
extern const std::string_view kByteLevelRegex;

// kIo if the file cannot be read, kBadData (naming file, value and what is allowed) if it is not of
// the kind above. Memory is a small multiple of the file's size.
base::Result<TokenizerJson> ReadTokenizerJson(base::Env& env, const std::string& path);
// The same from text; `name` stands in messages.
base::Result<TokenizerJson> ParseTokenizerJson(std::string_view text, const std::string& name);

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_TOKENIZER_JSON_H_
