#include "model/hf_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "formats/printable.h"
#include "tokenizer/pre_tokenizer_regex.h"

namespace kvasir::model {
namespace {

using base::Result;
using formats::Quoted;
using formats::TextNormalizer;
using formats::TokenizerJson;
using tokenizer::TokenId;
using tokenizer::TokenType;
using tokenizer::VocabularyKind;
using tokenizer::VocabularySpec;

constexpr std::string_view kMetaSpace = "\xE2\x96\x81";  // U+2581 ▁

// Longer pieces would make the check of all their parts slow; published ones have up to 48.
constexpr std::size_t kMaxMergedBytes = 256;

template <typename... Args>
base::Error Wrong(const TokenizerJson& file, fmt::format_string<Args...> format, Args&&... args) {
  return base::MakeError(base::ErrorCode::kBadData, "{}: {}", file.document.name(),
                         fmt::format(format, std::forward<Args>(args)...));
}

bool IsBytePiece(std::string_view piece) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return piece.size() == 6 && piece.starts_with("<0x") && is_hex(piece[3]) && is_hex(piece[4]) &&
         piece[5] == '>';
}

Result<void> CheckId(const TokenizerJson& file, std::string_view text, std::uint64_t id,
                     std::uint64_t rows) {
  if (id < rows) return base::Success();
  return Wrong(file, "token {} has id {}; the model's vocab_size is {}", Quoted(text), id, rows);
}

// Pieces and types; all but the scores, merges and what a kind adds.
Result<VocabularySpec> ReadTokens(const TokenizerJson& file, std::uint64_t rows) {
  VocabularySpec spec;
  spec.kind = file.word_regex ? VocabularyKind::kByteLevel : VocabularyKind::kSentencePiece;
  spec.pieces.resize(rows);
  spec.types.assign(rows, TokenType::kUnused);
  spec.scores.assign(rows, 0.0f);
  for (const formats::JsonToken& token : file.tokens) {
    KV_TRY(CheckId(file, token.text, token.id, rows));
    spec.pieces[token.id] = token.text;
    const bool byte = !file.word_regex && IsBytePiece(token.text);
    spec.types[token.id] = byte ? TokenType::kByte : TokenType::kNormal;
    if (file.unknown == token.text) spec.unk = token.id;
  }
  for (const formats::AddedToken& token : file.added) {
    KV_TRY(CheckId(file, token.text, token.id, rows));
    spec.pieces[token.id] = token.text;
    spec.types[token.id] = token.special ? TokenType::kControl : TokenType::kUserDefined;
    if (file.unknown == token.text) spec.unk = token.id;
    if (token.special) continue;
    if (token.normalized && file.normalizer != TextNormalizer::kNone) {
      return Wrong(file, "token {} is looked for in normalized text; supported is normalized false",
                   Quoted(token.text));
    }
    if (file.normalizer == TextNormalizer::kLedSpaces) {
      return Wrong(file,
                   "token {} is not special, and the text behind it would be led by '▁' again",
                   Quoted(token.text));
    }
  }
  if (spec.unk) spec.types[*spec.unk] = TokenType::kUnknown;
  for (std::uint64_t id = 0; id < rows; ++id) {
    if (spec.types[id] == TokenType::kUnused) spec.pieces[id] = fmt::format("[PAD{}]", id);
  }
  return spec;
}

Result<void> ReadByteLevel(const TokenizerJson& file, VocabularySpec& spec) {
  const auto pre = tokenizer::FindPreTokenizerByRegex(*file.word_regex);
  if (!pre) {
    return Wrong(file,
                 "pre_tokenizer: the regular expression is {}; supported are those of GPT-2, "
                 "Llama 3 and Qwen2",
                 Quoted(*file.word_regex, '\'', 200));
  }
  spec.pre = *pre;
  const bool composes = spec.pre == tokenizer::PreTokenizer::kQwen2;
  if (composes != (file.normalizer == TextNormalizer::kNfc)) {
    return Wrong(file, "normalizer: with this pre_tokenizer, that of {}, it must be {}",
                 tokenizer::PreTokenizerName(spec.pre), composes ? "NFC" : "null");
  }
  if (file.ignore_merges != (spec.pre == tokenizer::PreTokenizer::kLlama3)) {
    return Wrong(file,
                 "model: ignore_merges is {}; with this pre_tokenizer, that of {}, it must "
                 "be {}",
                 file.ignore_merges, tokenizer::PreTokenizerName(spec.pre), !file.ignore_merges);
  }
  if (file.byte_fallback) {
    return Wrong(file, "model: byte_fallback is true; with ByteLevel it must be false");
  }
  spec.merges.reserve(file.merges.size());
  for (const auto& [left, right] : file.merges) {
    if (left.find(' ') != left.npos || right.find(' ') != right.npos) {
      return Wrong(file, "model: merge {} of {} and {} holds a blank", spec.merges.size(),
                   Quoted(left), Quoted(right));
    }
    spec.merges.push_back(fmt::format("{} {}", left, right));
  }
  return base::Success();
}

// Turns merges into the scores of what they make.
class MergeScores {
 public:
  MergeScores(const TokenizerJson& file, VocabularySpec& spec) : file_(file), spec_(spec) {
    for (const formats::JsonToken& token : file.tokens) {
      if (spec.types[token.id] == TokenType::kNormal) ids_.emplace(token.text, token.id);
    }
  }

  Result<void> Read() {
    for (const auto& [left, right] : file_.merges) {
      KV_TRY(Add(left, right));
    }
    for (const auto& [text, id] : ids_) {
      KV_TRY(CheckParts(text));
    }
    return base::Success();
  }

 private:
  std::optional<TokenId> Find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  static std::uint64_t Key(TokenId left, TokenId right) {
    return std::uint64_t{left} << 32 | right;
  }

  Result<void> Add(std::string_view left, std::string_view right) {
    made_.assign(left).append(right);
    const auto left_id = Find(left), right_id = Find(right), made = Find(made_);
    if (!left_id || !right_id || !made) {
      return Wrong(file_,
                   "model: merge {} is of {} and {}; both and what they make must be normal "
                   "tokens",
                   rank_, Quoted(left), Quoted(right));
    }
    merges_.insert(Key(*left_id, *right_id));
    ++rank_;
    if (made == last_) return base::Success();
    if (spec_.scores[*made] != 0) {
      return Wrong(file_,
                   "model: merges that make {} do not stand together; a score cannot order "
                   "them so",
                   Quoted(made_));
    }
    last_ = made;
    spec_.scores[*made] = -static_cast<float>(++groups_);
    return base::Success();
  }

  // Every two symbols that are this token when joined must have a merge.
  Result<void> CheckParts(std::string_view token) const {
    if (token.find(' ') != token.npos && file_.normalizer != TextNormalizer::kNone) {
      return Wrong(file_, "model: token {} holds a blank, which is '▁' in this kind",
                   Quoted(token));
    }
    if (token.size() > kMaxMergedBytes) {
      return Wrong(file_, "model: token {} has {} bytes; allowed are 1 to {}", Quoted(token),
                   token.size(), kMaxMergedBytes);
    }
    const std::size_t first = base::DecodeUtf8(token).bytes;
    for (std::size_t at = first; at < token.size();) {
      const std::string_view left = token.substr(0, at), right = token.substr(at);
      const std::size_t next = base::DecodeUtf8(right).bytes;
      const auto left_id = Find(left), right_id = Find(right);
      const bool left_stands = left_id || at == first;  // As a token or as a character.
      const bool right_stands = right_id || next == right.size();
      at += next;
      if (!left_stands || !right_stands) continue;
      if (left_id && right_id && merges_.contains(Key(*left_id, *right_id))) continue;
      return Wrong(file_,
                   "model: no merge makes {} of {} and {}; this kind joins any two tokens "
                   "that make a third",
                   Quoted(token), Quoted(left), Quoted(right));
    }
    return base::Success();
  }

  const TokenizerJson& file_;
  VocabularySpec& spec_;
  std::unordered_map<std::string_view, TokenId> ids_;  // Of normal tokens.
  std::unordered_set<std::uint64_t> merges_;           // By both ids.
  std::string made_;
  std::optional<TokenId> last_;  // What the last merge made.
  std::size_t rank_ = 0;
  std::size_t groups_ = 0;
};

// Where nothing replaces spaces, a space in a token is one, and becomes ▁; a ▁ would be none.
Result<void> EscapeSpaces(const TokenizerJson& file, VocabularySpec& spec) {
  for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
    if (spec.types[id] != TokenType::kNormal) continue;
    std::string& piece = spec.pieces[id];
    if (piece.find(kMetaSpace) != piece.npos) {
      return Wrong(file, "model: token {} holds '▁', which no normalizer makes of a space",
                   Quoted(piece));
    }
    for (std::size_t at = piece.find(' '); at != piece.npos; at = piece.find(' ', at)) {
      piece.replace(at, 1, kMetaSpace);
    }
  }
  return base::Success();
}

Result<void> ReadSentencePiece(const TokenizerJson& file, VocabularySpec& spec) {
  if (!file.byte_fallback) {
    return Wrong(file,
                 "pre_tokenizer is none and byte_fallback false; supported are ByteLevel, or "
                 "byte_fallback true");
  }
  if (file.normalizer == TextNormalizer::kNfc) {
    return Wrong(file, "normalizer: with byte_fallback it must be none or replace ' ' by '▁'");
  }
  if (file.ignore_merges) {
    return Wrong(file, "model: ignore_merges is true; with byte_fallback it must be false");
  }
  spec.add_space_prefix = file.normalizer == TextNormalizer::kLedSpaces;
  KV_TRY(MergeScores(file, spec).Read());
  if (file.normalizer != TextNormalizer::kNone) return base::Success();
  return EscapeSpaces(file, spec);
}

}  // namespace

Result<VocabularySpec> VocabularyOfJson(const TokenizerJson& file, std::uint64_t rows) {
  KV_TRY(auto spec, ReadTokens(file, rows));
  if (file.word_regex) {
    KV_TRY(ReadByteLevel(file, spec));
  } else {
    KV_TRY(ReadSentencePiece(file, spec));
  }
  spec.bos = file.first;
  spec.add_bos = file.first.has_value();
  spec.eos = file.last;
  spec.add_eos = file.last.has_value();
  return spec;
}

}  // namespace kvasir::model
