#include "formats/tokenizer_json_steps.h"

#include <vector>

#include "formats/printable.h"

namespace kvasir::formats {
namespace {

using base::Result;

constexpr std::string_view kMetaSpace = "\xE2\x96\x81";  // U+2581 ▁

std::string TypeText(const JsonNode& node) {
  const auto type = node.Find("type");
  return type ? type->Text() : node.Text();
}

bool IsType(const JsonNode& node, std::string_view type) {
  const auto found = node.Find("type");
  return found && found->AsString() == type;
}

bool Holds(const JsonNode& node, std::string_view key, std::string_view text) {
  const auto found = node.Find(key);
  return found && found->AsString() == text;
}

bool Flag(const JsonNode& node, std::string_view key, bool otherwise) {
  const auto found = node.Find(key);
  return found ? found->AsBool().value_or(otherwise) : otherwise;
}

// The steps of a Sequence, which are its member `list`; of any other node itself.
std::vector<JsonNode> Steps(const std::optional<JsonNode>& node, std::string_view list) {
  std::vector<JsonNode> steps;
  if (!node || node->is_null()) return steps;
  const auto inner = IsType(*node, "Sequence") ? node->Find(list) : std::nullopt;
  if (!inner) return {*node};
  for (const JsonItem& item : inner->items()) steps.push_back(item.value);
  return steps;
}

bool IsPrepend(const JsonNode& step) {
  return IsType(step, "Prepend") && Holds(step, "prepend", kMetaSpace);
}

bool IsSpaceReplace(const JsonNode& step) {
  const auto pattern = step.Find("pattern");
  return IsType(step, "Replace") && pattern && Holds(*pattern, "String", " ") &&
         Holds(step, "content", kMetaSpace);
}

// The regular expression of a Split that keeps what it finds as words.
Result<std::string_view> SplitRegex(const JsonPlace& at, const JsonNode& split) {
  const auto pattern = split.Find("pattern");
  const auto regex = pattern ? pattern->Find("Regex") : std::nullopt;
  if (!regex || !regex->is_string()) return at.Wrong("its Split has no Regex");
  if (!Holds(split, "behavior", "Isolated") || Flag(split, "invert", false)) {
    return at.Wrong("its Split must have behavior 'Isolated' and invert false");
  }
  return *regex->AsString();
}

}  // namespace

Result<TextNormalizer> ReadNormalizer(const JsonPlace& at, const std::optional<JsonNode>& node) {
  const std::vector<JsonNode> steps = Steps(node, "normalizers");
  if (steps.empty()) return TextNormalizer::kNone;
  if (steps.size() == 1 && IsType(steps[0], "NFC")) return TextNormalizer::kNfc;
  if (steps.size() == 1 && IsSpaceReplace(steps[0])) return TextNormalizer::kSpaces;
  if (steps.size() == 2 && IsPrepend(steps[0]) && IsSpaceReplace(steps[1])) {
    return TextNormalizer::kLedSpaces;
  }
  std::string types;
  for (const JsonNode& step : steps) types += (types.empty() ? "" : ", ") + TypeText(step);
  return at.Wrong(
      "its steps are {}; supported are none, NFC, and Replace ' ' by '▁' with or "
      "without Prepend '▁' before it",
      types);
}

Result<std::optional<std::string_view>> ReadWordRegex(const JsonPlace& at,
                                                      const std::optional<JsonNode>& node) {
  std::optional<std::string_view> regex;
  bool bytes = false;
  for (const JsonNode& step : Steps(node, "pretokenizers")) {
    if (bytes) return at.Wrong("{} follows ByteLevel, which must be the last", TypeText(step));
    if (IsType(step, "Split") && !regex) {
      KV_TRY(regex, SplitRegex(at, step));
    } else if (IsType(step, "ByteLevel")) {
      bytes = true;
      if (Flag(step, "add_prefix_space", true)) {
        return at.Wrong("add_prefix_space of ByteLevel is true; only false is supported");
      }
      if (Flag(step, "use_regex", true)) {
        if (regex) return at.Wrong("use_regex of ByteLevel is true behind a Split");
        regex = kByteLevelRegex;
      }
    } else {
      return at.Wrong("it is {}; supported are none, ByteLevel, and Split then ByteLevel",
                      TypeText(step));
    }
  }
  if (regex && !bytes) return at.Wrong("it is a Split without ByteLevel behind it");
  if (bytes && !regex) return at.Wrong("use_regex of ByteLevel is false, and no Split is there");
  return regex;
}

Result<void> CheckDecoder(const JsonPlace& at, const std::optional<JsonNode>& node,
                          bool byte_level) {
  for (const JsonNode& step : Steps(node, "decoders")) {
    const bool known = byte_level ? IsType(step, "ByteLevel")
                                  : IsType(step, "Replace") || IsType(step, "ByteFallback") ||
                                        IsType(step, "Fuse") || IsType(step, "Strip") ||
                                        IsType(step, "Metaspace");
    if (!known) {
      return at.Wrong("its step {} is not supported with {}", TypeText(step),
                      byte_level ? "a ByteLevel pre-tokenizer" : "byte_fallback");
    }
  }
  return base::Success();
}

Result<TextFrame> ReadFrame(const JsonPlace& at, const std::optional<JsonNode>& node) {
  TextFrame frame;
  for (const JsonNode& step : Steps(node, "processors")) {
    if (IsType(step, "ByteLevel")) continue;  // Of offsets only.
    const auto single = step.Find("single");
    if (!IsType(step, "TemplateProcessing") || !single) {
      return at.Wrong("it is {}; supported are ByteLevel and TemplateProcessing", TypeText(step));
    }
    bool text_seen = false;
    for (const JsonItem& item : single->items()) {
      if (item.value.Find("Sequence")) {
        if (text_seen) return at.Wrong("its template takes the text twice");
        text_seen = true;
        continue;
      }
      const auto special = item.value.Find("SpecialToken");
      const auto id = special ? special->Find("id") : std::nullopt;
      if (!id || !id->is_string()) return at.Wrong("its template holds {}", item.value.Text());
      auto& place = text_seen ? frame.last : frame.first;
      if (place) return at.Wrong("its template puts two tokens on one side of a text");
      place = id->AsString();
    }
    if (!text_seen) return at.Wrong("its template does not take the text");
  }
  return frame;
}

}  // namespace kvasir::formats
