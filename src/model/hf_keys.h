// Typed look-up in a JSON object of settings, and which of them a reader must know.
#ifndef KVASIR_MODEL_HF_KEYS_H_
#define KVASIR_MODEL_HF_KEYS_H_

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "formats/json_document.h"

namespace kvasir::model {

// A setting that would change the answer, and the values at which it does not, as JSON.
struct NeutralSetting {
  std::string_view key;
  std::string_view allowed;  // "false", "1", "'silu' or 'swish'", "null": JsonNode::Text's form.
};

// The members of one object. A view. A null counts as not there.
class HfKeys {
 public:
  // `where` stands in messages before a key: "rope_scaling." or nothing.
  HfKeys(std::string_view file, formats::JsonNode object, std::string_view where = "")
      : file_(file), object_(object), where_(where) {}

  std::optional<formats::JsonNode> Find(std::string_view key) const;
  // The members of an object inside this one; `where` must outlive the result.
  HfKeys Inside(formats::JsonNode object, std::string_view where) const {
    return {file_, object, where};
  }

  // Nothing if the key is not there; an Error naming it if it is of another type.
  base::Result<std::optional<std::uint64_t>> OptionalUint(std::string_view key) const;
  base::Result<std::optional<double>> OptionalDouble(std::string_view key) const;
  base::Result<std::optional<std::string_view>> OptionalString(std::string_view key) const;
  base::Result<bool> Bool(std::string_view key, bool otherwise) const;
  // An Error too if the key is not there.
  base::Result<std::uint64_t> Uint(std::string_view key) const;
  base::Result<double> Between(std::string_view key, std::optional<double> otherwise, double low,
                               double high) const;

  // An Error naming the first key that is none of these, or is neutral but holds another value.
  base::Result<void> RefuseOthers(std::span<const std::string_view> read,
                                  std::span<const std::string_view> harmless,
                                  std::span<const NeutralSetting> neutral) const;

  template <typename... Args>
  base::Error Wrong(std::string_view key, fmt::format_string<Args...> format,
                    Args&&... args) const {
    return base::MakeError(base::ErrorCode::kBadData, "{}: {}{} {}", file_, where_, key,
                           fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string_view file_;
  formats::JsonNode object_;
  std::string_view where_;
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_HF_KEYS_H_
