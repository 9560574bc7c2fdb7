#include "tokenizer/pre_tokenizer.h"

#include <array>
#include <cstdint>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace kvasir::tokenizer {
namespace {

constexpr std::uint32_t kLongS = 0x17F;  // ſ, whose upper case is S.

struct Name {
  std::string_view name;
  PreTokenizer kind;
};
// The first name of a kind is the one that is written.
constexpr std::array<Name, 7> kNames = {{{"gpt-2", PreTokenizer::kGpt2},
                                         {"gpt2", PreTokenizer::kGpt2},
                                         {"llama-bpe", PreTokenizer::kLlama3},
                                         {"llama3", PreTokenizer::kLlama3},
                                         {"llama-v3", PreTokenizer::kLlama3},
                                         {"qwen2", PreTokenizer::kQwen2},
                                         {"deepseek-r1-qwen", PreTokenizer::kQwen2}}};

// One step through a text.
struct Character {
  std::uint32_t code_point = 0;
  std::size_t bytes = 0;  // 0 at the end of the text.
  CharacterClass type = CharacterClass::kOther;

  bool is(CharacterClass wanted) const { return bytes > 0 && type == wanted; }
  bool is_newline() const { return bytes > 0 && (code_point == '\r' || code_point == '\n'); }
};

Character At(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {};
  const base::Utf8Step step = base::DecodeUtf8(text.substr(at));
  return {step.code_point, step.bytes, ClassOf(step.code_point)};
}

// Where a run of characters of one class that begins at `at` ends, after at most `most` of them.
std::size_t EndOfRun(std::string_view text, std::size_t at, CharacterClass type,
                     std::size_t most = std::string_view::npos) {
  for (; most > 0; --most) {
    const Character next = At(text, at);
    if (!next.is(type)) break;
    at += next.bytes;
  }
  return at;
}

// 's 't 're 've 'm 'll 'd: its bytes, or 0. In any case, if asked (ſ counts as an s).
std::size_t Contraction(std::string_view text, bool any_case) {
  if (text.front() != '\'') return 0;
  const auto letter = [&](std::size_t at) -> std::pair<char, std::size_t> {
    const Character next = At(text, at);
    std::uint32_t c = next.code_point;
    if (any_case && c == kLongS) c = 's';
    if (any_case && c >= 'A' && c <= 'Z') c += 'a' - 'A';
    return {c < 0x80 ? static_cast<char>(c) : '\0', at + next.bytes};
  };
  const auto [first, first_end] = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return first_end;
  const auto [second, second_end] = letter(first_end);
  const bool known = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                     (first == 'l' && second == 'l');
  return known ? second_end : 0;
}

// \s+(?!\S)|\s+ at a run of white space that ends at `end`: the last character of the run is left
// for the word that follows, unless nothing follows or it is alone.
std::size_t SpacesBefore(std::string_view text, std::size_t end) {
  if (end == text.size()) return end;
  std::size_t last = end - 1;
  while ((text[last] & 0xC0) == 0x80) --last;
  return last == 0 ? end : last;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Source: OpenAI's GPT-2 encoder.
std::size_t Gpt2Word(std::string_view text) {
  if (const std::size_t bytes = Contraction(text, false)) return bytes;
  const std::size_t lead = text.front() == ' ' ? 1 : 0;
  const Character next = At(text, lead);
  if (next.bytes > 0 && next.type != CharacterClass::kSpace) {
    return EndOfRun(text, lead, next.type);
  }
  return SpacesBefore(text, EndOfRun(text, 0, CharacterClass::kSpace));
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+          with max_digits in place of 3.
// Source: the tokenizers published with Llama 3 (3) and Qwen2 (1).
std::size_t Llama3Word(std::string_view text, std::size_t max_digits) {
  if (const std::size_t bytes = Contraction(text, true)) return bytes;
  const Character first = At(text, 0);
  if (first.is(CharacterClass::kNumber)) {
    return EndOfRun(text, 0, CharacterClass::kNumber, max_digits);
  }
  const std::size_t letters = first.is(CharacterClass::kLetter) ? 0 : first.bytes;
  if (!first.is_newline() && At(text, letters).is(CharacterClass::kLetter)) {
    return EndOfRun(text, letters, CharacterClass::kLetter);
  }
  const std::size_t lead = text.front() == ' ' ? 1 : 0;
  if (At(text, lead).is(CharacterClass::kOther)) {
    std::size_t end = EndOfRun(text, lead, CharacterClass::kOther);
    while (At(text, end).is_newline()) ++end;
    return end;
  }
  const std::size_t end = EndOfRun(text, 0, CharacterClass::kSpace);
  const std::size_t newline = text.substr(0, end).find_last_of("\r\n");
  if (newline != std::string_view::npos) return newline + 1;
  return SpacesBefore(text, end);
}

}  // namespace

std::optional<PreTokenizer> FindPreTokenizer(std::string_view name) {
  for (const Name& known : kNames) {
    if (known.name == name) return known.kind;
  }
  return std::nullopt;
}

std::string_view PreTokenizerName(PreTokenizer kind) {
  for (const Name& known : kNames) {
    if (known.kind == kind) return known.name;
  }
  return "";
}

std::size_t FirstWordBytes(PreTokenizer kind, std::string_view text) {
  switch (kind) {
    case PreTokenizer::kGpt2:
      return Gpt2Word(text);
    case PreTokenizer::kLlama3:
      return Llama3Word(text, 3);
    case PreTokenizer::kQwen2:
      return Llama3Word(text, 1);
  }
  return text.size();
}

}  // namespace kvasir::tokenizer
