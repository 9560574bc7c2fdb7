// The settings of a text, as a session keeps them.
#ifndef KVASIR_CLI_SESSION_SETTINGS_H_
#define KVASIR_CLI_SESSION_SETTINGS_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "constraints/constraint_compiler.h"
#include "engine/request.h"

namespace kvasir::cli {

struct SessionSettings {
  engine::GenerateRequest request;  // Without prompt, length, log-probabilities and constraint.
  std::optional<constraints::ConstraintSpec> constraint;
};

// One JSON object that holds them exactly: docs/formats/session.md.
std::string SessionSettingsText(const SessionSettings& settings);

// kBadData naming a field that is missing, of the wrong kind or out of range. Whether a model has
// the tokens is for CheckRequest.
base::Result<SessionSettings> ParseSessionSettings(std::string_view text);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_SESSION_SETTINGS_H_
