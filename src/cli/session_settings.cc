#include "cli/session_settings.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using constraints::ConstraintKind;
using nlohmann::json;

constexpr std::pair<ConstraintKind, const char*> kKinds[] = {
    {ConstraintKind::kRegex, "regex"},
    {ConstraintKind::kJsonSchema, "json_schema"},
    {ConstraintKind::kGrammar, "grammar"},
    {ConstraintKind::kChoices, "choices"}};

json ConstraintToJson(const constraints::ConstraintSpec& spec) {
  json out = {{"texts", spec.texts},
              {"assert_formats", spec.json.assert_formats},
              {"compact", spec.json.compact},
              {"max_bytes", spec.max_bytes}};
  for (const auto& [kind, name] : kKinds) {
    if (kind == spec.kind) out["kind"] = name;
  }
  return out;
}

// Reads fields of one object; remembers the first that is wrong.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}

  template <typename T>
  void Read(const char* name, T& to) {
    if (wrong_ != nullptr) return;
    const auto found = object_.find(name);
    if (found == object_.end() || !Take(*found, to)) wrong_ = name;
  }
  const char* wrong() const { return wrong_; }

 private:
  static bool Take(const json& value, std::string& to) {
    if (!value.is_string()) return false;
    to = value.get<std::string>();
    return true;
  }
  static bool Take(const json& value, bool& to) {
    if (!value.is_boolean()) return false;
    to = value.get<bool>();
    return true;
  }
  static bool Take(const json& value, float& to) {
    if (!value.is_number()) return false;
    to = value.get<float>();
    return true;
  }
  // Unsigned numbers of any width.
  template <typename T>
  requires std::is_unsigned_v<T>
  static bool Take(const json& value, T& to) {
    if (!value.is_number_unsigned()) return false;
    const auto number = value.get<std::uint64_t>();
    to = static_cast<T>(number);
    return to == number;
  }
  template <typename T>
  static bool Take(const json& value, std::vector<T>& to) {
    if (!value.is_array()) return false;
    to.resize(value.size());
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (!Take(value[i], to[i])) return false;
    }
    return true;
  }

  const json& object_;
  const char* wrong_ = nullptr;
};

Result<void> Wrong(const char* field) {
  return MakeError(ErrorCode::kBadData, "the session's settings have no proper '{}'", field);
}

Result<constraints::ConstraintSpec> ConstraintFromJson(const json& object) {
  constraints::ConstraintSpec spec;
  std::string kind;
  Fields fields(object);
  fields.Read("kind", kind);
  fields.Read("texts", spec.texts);
  fields.Read("assert_formats", spec.json.assert_formats);
  fields.Read("compact", spec.json.compact);
  fields.Read("max_bytes", spec.max_bytes);
  if (fields.wrong() != nullptr) return Wrong(fields.wrong()).as_failure();
  if (spec.texts.empty()) return Wrong("texts").as_failure();
  for (const auto& [its, name] : kKinds) {
    if (kind != name) continue;
    spec.kind = its;
    return spec;
  }
  return Wrong("kind").as_failure();
}

}  // namespace

std::string SessionSettingsText(const SessionSettings& settings) {
  const engine::GenerateRequest& request = settings.request;
  const sampling::SamplingOptions& sampling = request.sampling;
  json out = {{"seed", request.seed},
              {"choice", request.first_choice},
              {"roll", request.overflow == engine::Overflow::kRoll},
              {"temperature", sampling.temperature},
              {"top_k", sampling.top_k},
              {"top_p", sampling.top_p},
              {"min_p", sampling.min_p},
              {"repeat_penalty", sampling.repeat_penalty},
              {"repeat_last_n", sampling.repeat_last_n},
              {"presence_penalty", sampling.presence_penalty},
              {"frequency_penalty", sampling.frequency_penalty},
              {"banned", sampling.banned},
              {"stops", request.stops},
              {"end_tokens", request.end_tokens},
              {"named_end_tokens", request.named_end_tokens}};
  if (settings.constraint) out["constraint"] = ConstraintToJson(*settings.constraint);
  // Stop strings of a command line are any bytes.
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<SessionSettings> ParseSessionSettings(std::string_view text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) {
    return MakeError(ErrorCode::kBadData, "the session's settings are not a JSON object");
  }
  SessionSettings settings;
  engine::GenerateRequest& request = settings.request;
  sampling::SamplingOptions& sampling = request.sampling;
  bool roll = false;
  Fields fields(object);
  fields.Read("seed", request.seed);
  fields.Read("choice", request.first_choice);
  fields.Read("roll", roll);
  fields.Read("temperature", sampling.temperature);
  fields.Read("top_k", sampling.top_k);
  fields.Read("top_p", sampling.top_p);
  fields.Read("min_p", sampling.min_p);
  fields.Read("repeat_penalty", sampling.repeat_penalty);
  fields.Read("repeat_last_n", sampling.repeat_last_n);
  fields.Read("presence_penalty", sampling.presence_penalty);
  fields.Read("frequency_penalty", sampling.frequency_penalty);
  fields.Read("banned", sampling.banned);
  fields.Read("stops", request.stops);
  fields.Read("end_tokens", request.end_tokens);
  fields.Read("named_end_tokens", request.named_end_tokens);
  if (fields.wrong() != nullptr) return Wrong(fields.wrong()).as_failure();
  request.overflow = roll ? engine::Overflow::kRoll : engine::Overflow::kStop;
  if (const auto found = object.find("constraint"); found != object.end()) {
    KV_TRY(settings.constraint, ConstraintFromJson(*found));
  }
  return settings;
}

}  // namespace kvasir::cli
