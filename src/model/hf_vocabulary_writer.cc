#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "formats/json_document.h"
#include "formats/printable.h"
#include "model/hf_writer.h"
#include "tokenizer/pre_tokenizer_regex.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using formats::AppendJsonString;
using formats::Quoted;
using tokenizer::TokenId;
using tokenizer::TokenType;
using tokenizer::VocabularyKind;
using tokenizer::VocabularySpec;

constexpr std::string_view kMetaSpace = "\xE2\x96\x81";  // U+2581 ▁
constexpr std::string_view kReplace =
    R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})";

std::string Quote(std::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

// Whether spaces are ▁ in this vocabulary's tokens. Where none holds one, a space is left to its
// byte token: tokenizer.json must not make a ▁ of it, which would be three.
bool EscapesSpaces(const VocabularySpec& spec) {
  for (TokenId id = 0; id < spec.pieces.size(); ++id) {
    if (spec.types[id] != TokenType::kNormal) continue;
    if (spec.pieces[id].find(kMetaSpace) != std::string::npos) return true;
  }
  return false;
}

// The merges of a kind that merges by score: of all two tokens that make a third, the best first.
class ScoreMerges {
 public:
  explicit ScoreMerges(const VocabularySpec& spec) : spec_(spec), escapes_(EscapesSpaces(spec)) {
    for (TokenId id = 0; id < spec.pieces.size(); ++id) {
      if (spec.types[id] == TokenType::kNormal) ids_.emplace(spec.pieces[id], id);
    }
  }

  Result<std::vector<std::pair<std::string_view, std::string_view>>> Make() const {
    std::vector<TokenId> made;
    for (const auto& [piece, id] : ids_) {
      KV_TRY(const bool merged, IsMerged(piece));
      if (merged) made.push_back(id);
    }
    std::sort(made.begin(), made.end(), [this](TokenId a, TokenId b) {
      return std::pair(-spec_.scores[a], a) < std::pair(-spec_.scores[b], b);
    });
    std::vector<std::pair<std::string_view, std::string_view>> merges;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (i > 0 && spec_.scores[made[i]] == spec_.scores[made[i - 1]]) {
        return MakeError(
            ErrorCode::kBadData,
            "tokens {} and {} are joined at one score, {}, which tokenizer.json has no "
            "words for",
            Quoted(spec_.pieces[made[i - 1]]), Quoted(spec_.pieces[made[i]]),
            spec_.scores[made[i]]);
      }
      const std::string_view piece = spec_.pieces[made[i]];
      for (std::size_t at = Step(piece, 0); at < piece.size(); at = Step(piece, at)) {
        const auto left = piece.substr(0, at), right = piece.substr(at);
        if (ids_.contains(left) && ids_.contains(right)) merges.emplace_back(left, right);
      }
    }
    return merges;
  }

 private:
  static constexpr std::size_t kMaxMergedBytes = 256;  // As they are read (hf_vocabulary.cc).

  static std::size_t Step(std::string_view piece, std::size_t at) {
    return at + base::DecodeUtf8(piece.substr(at)).bytes;
  }

  // Whether two tokens make this one; an Error if a token and a character that is none do.
  Result<bool> IsMerged(std::string_view piece) const {
    const std::size_t first = Step(piece, 0);
    if (first == piece.size()) return false;
    if (piece.size() > kMaxMergedBytes || (escapes_ && piece.find(' ') != piece.npos)) {
      return MakeError(ErrorCode::kBadData,
                       "token {} of {} bytes; tokenizer.json holds up to {}, without blanks",
                       Quoted(piece), piece.size(), kMaxMergedBytes);
    }
    bool merged = false;
    for (std::size_t at = first; at < piece.size(); at = Step(piece, at)) {
      const bool left = ids_.contains(piece.substr(0, at));
      const bool right = ids_.contains(piece.substr(at));
      merged = merged || (left && right);
      const bool joined = (left || at == first) && (right || Step(piece, at) == piece.size());
      if (joined && !(left && right)) {
        return MakeError(
            ErrorCode::kBadData,
            "token {} is joined of {} and {}, of which one is no token; tokenizer.json "
            "has no words for it",
            Quoted(piece), Quoted(piece.substr(0, at)), Quoted(piece.substr(at)));
      }
    }
    return merged;
  }

  const VocabularySpec& spec_;
  bool escapes_;
  std::unordered_map<std::string_view, TokenId> ids_;  // Of normal tokens.
};

Result<void> CheckTokens(const VocabularySpec& spec) {
  if (spec.add_space_prefix && !EscapesSpaces(spec)) {
    return MakeError(
        ErrorCode::kBadData,
        "texts are led by a space, and no token holds one; tokenizer.json has no words "
        "for it");
  }
  std::unordered_map<std::string_view, TokenId> ids;
  for (TokenId id = 0; id < spec.pieces.size(); ++id) {
    if (spec.types[id] == TokenType::kUnused) continue;
    const auto [same, is_new] = ids.emplace(spec.pieces[id], id);
    if (!is_new) {
      return MakeError(ErrorCode::kBadData,
                       "tokens {} and {} are both written {}; tokenizer.json holds one of them",
                       same->second, id, Quoted(spec.pieces[id]));
    }
    if (spec.types[id] == TokenType::kByte && spec.kind == VocabularyKind::kByteLevel) {
      return MakeError(
          ErrorCode::kBadData,
          "token {} is a byte token among byte-level ones; tokenizer.json has no words "
          "for it",
          id);
    }
    const bool unknown = spec.types[id] == TokenType::kUnknown;
    const bool mute = unknown || spec.types[id] == TokenType::kControl;
    if ((unknown && spec.unk != id) || (spec.unk == id && !mute)) {
      return MakeError(ErrorCode::kBadData,
                       "token {} is unknown by its type or by the metadata, not both; "
                       "tokenizer.json has no words for it",
                       id);
    }
    if (spec.types[id] == TokenType::kUserDefined && spec.add_space_prefix) {
      return MakeError(ErrorCode::kBadData,
                       "token {} is user-defined, and texts are led by a space; tokenizer.json has "
                       "no words for it",
                       id);
    }
  }
  return base::Success();
}

void AppendTokens(const VocabularySpec& spec, std::string& out) {
  out += "  \"added_tokens\": [";
  const char* comma = "\n    ";
  for (TokenId id = 0; id < spec.pieces.size(); ++id) {
    const TokenType type = spec.types[id];
    const bool special = type == TokenType::kControl || type == TokenType::kUnknown;
    if (!special && type != TokenType::kUserDefined) continue;
    out += fmt::format(
        R"({}{{"id": {}, "content": {}, "single_word": false, "lstrip": false, "rstrip": false, )"
        R"("normalized": false, "special": {}}})",
        comma, id, Quote(spec.pieces[id]), special);
    comma = ",\n    ";
  }
  out += "\n  ],\n";
}

void AppendTemplate(const VocabularySpec& spec, std::string& out) {
  if (!spec.add_bos && !spec.add_eos) {
    out += "  \"post_processor\": null,\n";
    return;
  }
  std::string single, pair, specials;
  const auto add = [&](TokenId id, const char* separator) {
    const std::string piece = Quote(spec.pieces[id]);
    specials += fmt::format(R"({}{}: {{"id": {}, "ids": [{}], "tokens": [{}]}})", separator, piece,
                            piece, id, piece);
    return fmt::format(R"({{"SpecialToken": {{"id": {}, "type_id": 0}}}})", piece);
  };
  const std::string first = spec.add_bos ? add(*spec.bos, "") + ", " : "";
  const bool both = spec.add_bos && spec.add_eos && spec.bos != spec.eos;
  std::string last;
  if (spec.add_eos) {
    last = spec.bos == spec.eos && spec.add_bos ? ", " + first.substr(0, first.size() - 2)
                                                : ", " + add(*spec.eos, both ? ", " : "");
  }
  const auto framed = [&](char text) {
    return fmt::format(R"({}{{"Sequence": {{"id": "{}", "type_id": 0}}}}{})", first, text, last);
  };
  out += fmt::format(
      R"(  "post_processor": {{"type": "TemplateProcessing", "single": [{}], "pair": [{}, {}], )"
      R"("special_tokens": {{{}}}}},)"
      "\n",
      framed('A'), framed('A'), framed('B'), specials);
}

void AppendSteps(const VocabularySpec& spec, std::string& out) {
  if (spec.kind == VocabularyKind::kByteLevel) {
    const bool composes = spec.pre == tokenizer::PreTokenizer::kQwen2;
    out += fmt::format("  \"normalizer\": {},\n", composes ? R"({"type": "NFC"})" : "null");
    constexpr std::string_view kByteLevel =
        R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": )";
    if (spec.pre == tokenizer::PreTokenizer::kGpt2) {
      out += fmt::format("  \"pre_tokenizer\": {}true}},\n", kByteLevel);
    } else {
      out += fmt::format(
          R"(  "pre_tokenizer": {{"type": "Sequence", "pretokenizers": [{{"type": "Split", )"
          R"("pattern": {{"Regex": {}}}, "behavior": "Isolated", "invert": false}}, {}false}}]}},)"
          "\n",
          Quote(tokenizer::PreTokenizerRegex(spec.pre)), kByteLevel);
    }
    out += fmt::format("  \"decoder\": {}true}},\n", kByteLevel);
  } else {
    const bool led = spec.add_space_prefix, escapes = EscapesSpaces(spec);
    if (escapes) {
      out += fmt::format(R"(  "normalizer": {{"type": "Sequence", "normalizers": [{}{}]}},)"
                         "\n",
                         led ? R"({"type": "Prepend", "prepend": "▁"}, )" : "", kReplace);
    } else {
      out += "  \"normalizer\": null,\n";
    }
    out += "  \"pre_tokenizer\": null,\n";
    out += fmt::format(
        R"(  "decoder": {{"type": "Sequence", "decoders": [{}{{"type": "ByteFallback"}}, )"
        R"({{"type": "Fuse"}}{}]}},)"
        "\n",
        escapes ? R"({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, )" : "",
        led ? R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})" : "");
  }
  AppendTemplate(spec, out);
}

Result<void> AppendModel(const VocabularySpec& spec, std::string& out) {
  const bool bytes = spec.kind == VocabularyKind::kByteLevel;
  out += fmt::format(
      R"(  "model": {{"type": "BPE", "dropout": null, "unk_token": {}, )"
      R"("continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": {}, )"
      R"("byte_fallback": {}, "ignore_merges": {},)"
      "\n    \"vocab\": {{",
      spec.unk ? Quote(spec.pieces[*spec.unk]) : "null", !bytes, !bytes,
      bytes && spec.pre == tokenizer::PreTokenizer::kLlama3);
  const char* comma = "\n      ";
  for (TokenId id = 0; id < spec.pieces.size(); ++id) {
    if (spec.types[id] == TokenType::kUnused) continue;
    out += fmt::format("{}{}: {}", comma, Quote(spec.pieces[id]), id);
    comma = ",\n      ";
  }
  out += "\n    },\n    \"merges\": [";
  comma = "\n      ";
  const auto add = [&](std::string_view left, std::string_view right) {
    out += comma;
    AppendJsonString(fmt::format("{} {}", left, right), out);
    comma = ",\n      ";
  };
  if (bytes) {
    for (const std::string_view merge : spec.merges) {
      const std::size_t blank = std::min(merge.find(' '), merge.size());
      add(merge.substr(0, blank), merge.substr(std::min(blank + 1, merge.size())));
    }
  } else {
    KV_TRY(const auto merges, ScoreMerges(spec).Make());
    for (const auto& [left, right] : merges) add(left, right);
  }
  out += "\n    ]\n  }\n";
  return base::Success();
}

}  // namespace

Result<std::string> HfTokenizerText(const VocabularySpec& spec) {
  KV_TRY(CheckTokens(spec));
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n";
  AppendTokens(spec, out);
  AppendSteps(spec, out);
  KV_TRY(AppendModel(spec, out));
  return out + "}\n";
}

std::string HfTokenizerConfigText(const VocabularySpec& spec, std::uint64_t context,
                                  std::string_view chat_template) {
  std::string out = "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n";
  const std::pair<std::string_view, std::optional<TokenId>> specials[] = {{"bos_token", spec.bos},
                                                                          {"eos_token", spec.eos},
                                                                          {"unk_token", spec.unk},
                                                                          {"pad_token", spec.pad}};
  for (const auto& [name, id] : specials) {
    if (id) out += fmt::format("  \"{}\": {},\n", name, Quote(spec.pieces[*id]));
  }
  if (!chat_template.empty()) {
    out += fmt::format("  \"chat_template\": {},\n", Quote(chat_template));
  }
  return out + fmt::format(
                   "  \"clean_up_tokenization_spaces\": false,\n"
                   "  \"model_max_length\": {}\n}}\n",
                   context);
}

}  // namespace kvasir::model
