// The parameters of /v1/completions and /v1/chat/completions: what this server does with each.
#ifndef KVASIR_SERVER_PARAMETER_TABLE_H_
#define KVASIR_SERVER_PARAMETER_TABLE_H_

#include <span>
#include <string_view>

#include "server/field_reader.h"

namespace kvasir::server {

enum class Handling {
  kUnknown,  // Refused by its name: neither OpenAI's API nor this server has it there.
  kUsed,     // Checked, and used.
  kIgnored,  // Of OpenAI's API: it cannot change the text that this server writes.
  kRefused,  // Of OpenAI's API: it asks for what this server cannot do.
};

struct Parameter {
  std::string_view name;
  Handling completions = Handling::kUnknown;
  Handling chat = Handling::kUnknown;
};

// All of them, by name. Source: OpenAI's API reference, "Completions" and "Chat".
std::span<const Parameter> Parameters();

// 400 naming the first member that is unknown, or refused and not null.
ApiResult<void> CheckParameters(const JsonValue& body, bool chat);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_PARAMETER_TABLE_H_
