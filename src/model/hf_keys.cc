#include "model/hf_keys.h"

#include <algorithm>

#include "formats/printable.h"

namespace kvasir::model {

using formats::JsonNode;

std::optional<JsonNode> HfKeys::Find(std::string_view key) const {
  auto found = object_.Find(key);
  if (found && found->is_null()) found.reset();
  return found;
}

base::Result<std::optional<std::uint64_t>> HfKeys::OptionalUint(std::string_view key) const {
  const auto node = Find(key);
  if (!node) return std::optional<std::uint64_t>();
  const auto value = node->AsUint();
  if (!value) return Wrong(key, "is {}; it must be a whole number", node->Text());
  return value;
}

base::Result<std::optional<double>> HfKeys::OptionalDouble(std::string_view key) const {
  const auto node = Find(key);
  if (!node) return std::optional<double>();
  const auto value = node->AsDouble();
  if (!value) return Wrong(key, "is {}; it must be a number", node->Text());
  return value;
}

base::Result<std::optional<std::string_view>> HfKeys::OptionalString(std::string_view key) const {
  const auto node = Find(key);
  if (!node) return std::optional<std::string_view>();
  const auto value = node->AsString();
  if (!value) return Wrong(key, "is {}; it must be a string", node->Text());
  return value;
}

base::Result<bool> HfKeys::Bool(std::string_view key, bool otherwise) const {
  const auto node = Find(key);
  if (!node) return otherwise;
  const auto value = node->AsBool();
  if (!value) return Wrong(key, "is {}; it must be true or false", node->Text());
  return *value;
}

base::Result<std::uint64_t> HfKeys::Uint(std::string_view key) const {
  KV_TRY(const auto value, OptionalUint(key));
  if (!value) return Wrong(key, "is missing");
  return *value;
}

base::Result<double> HfKeys::Between(std::string_view key, std::optional<double> otherwise,
                                     double low, double high) const {
  KV_TRY(const auto found, OptionalDouble(key));
  if (!found && !otherwise) return Wrong(key, "is missing");
  const double value = found ? *found : *otherwise;
  if (!(value >= low && value <= high)) {
    return Wrong(key, "is {}; allowed are {} to {}", value, low, high);
  }
  return value;
}

base::Result<void> HfKeys::RefuseOthers(std::span<const std::string_view> read,
                                        std::span<const std::string_view> harmless,
                                        std::span<const NeutralSetting> neutral) const {
  const auto holds = [](std::span<const std::string_view> names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const formats::JsonItem& item : object_.items()) {
    if (item.value.is_null() || holds(read, item.key) || holds(harmless, item.key)) continue;
    const auto setting = std::find_if(neutral.begin(), neutral.end(),
                                      [&](const auto& n) { return n.key == item.key; });
    const std::string text = item.value.Text();
    if (setting == neutral.end()) {
      return base::WithHint(
          Wrong(formats::Quoted(item.key),
                "is {}, a setting that is not supported; it could change the answer", text),
          "if it changes nothing that is computed, take it out of the file");
    }
    if (setting->allowed != text) {
      return Wrong(item.key, "is {}; only {} is supported", text, setting->allowed);
    }
  }
  return base::Success();
}

}  // namespace kvasir::model
