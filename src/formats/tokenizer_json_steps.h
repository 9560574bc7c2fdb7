// The steps of a tokenizer.json around its merges: normalizer, pre-tokenizer, post-processor,
// decoder. Each is read or refused by its name (tokenizer_json.h).
#ifndef KVASIR_FORMATS_TOKENIZER_JSON_STEPS_H_
#define KVASIR_FORMATS_TOKENIZER_JSON_STEPS_H_

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "formats/json_document.h"
#include "formats/tokenizer_json.h"

namespace kvasir::formats {

// Where in a file something is, for messages: "tokenizer.json: model: <what is wrong>".
class JsonPlace {
 public:
  JsonPlace(std::string_view file, std::string_view part) : file_(file), part_(part) {}

  JsonPlace Of(std::string_view part) const { return {file_, part}; }

  template <typename... Args>
  base::Error Wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return base::MakeError(base::ErrorCode::kBadData, "{}: {}{}{}", file_, part_,
                           part_.empty() ? "" : ": ",
                           fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string_view file_;
  std::string_view part_;
};

// A node that is null is one that is not there.
base::Result<TextNormalizer> ReadNormalizer(const JsonPlace& at,
                                            const std::optional<JsonNode>& node);

base::Result<std::optional<std::string_view>> ReadWordRegex(const JsonPlace& at,
                                                            const std::optional<JsonNode>& node);

// Decoding is the vocabulary's (tokenizer/stream_decoder.h), so a decoder must be of its kind.
base::Result<void> CheckDecoder(const JsonPlace& at, const std::optional<JsonNode>& node,
                                bool byte_level);

// The texts of the tokens that a template puts around a text.
struct TextFrame {
  std::optional<std::string_view> first, last;
};
base::Result<TextFrame> ReadFrame(const JsonPlace& at, const std::optional<JsonNode>& node);

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_TOKENIZER_JSON_STEPS_H_
