#include "server/parameter_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::server {
namespace {

constexpr Handling kNone = Handling::kUnknown;
constexpr Handling kUsed = Handling::kUsed;
constexpr Handling kIgnored = Handling::kIgnored;
constexpr Handling kRefused = Handling::kRefused;

constexpr Parameter kParameters[] = {
    {"answer_prefix", kUsed, kNone},
    {"audio", kNone, kRefused},
    {"best_of", kUsed, kNone},
    {"cache_salt", kUsed, kUsed},
    {"choice", kUsed, kUsed},
    {"continued", kUsed, kNone},
    {"echo", kUsed, kNone},
    {"frequency_penalty", kUsed, kUsed},
    {"function_call", kNone, kIgnored},
    {"functions", kNone, kRefused},
    {"grammar", kUsed, kUsed},
    {"logit_bias", kUsed, kUsed},
    {"logprobs", kUsed, kUsed},
    {"max_completion_tokens", kNone, kUsed},
    {"max_tokens", kUsed, kUsed},
    {"messages", kNone, kUsed},
    {"metadata", kNone, kIgnored},
    {"min_p", kUsed, kUsed},
    {"modalities", kNone, kUsed},
    {"model", kUsed, kUsed},
    {"n", kUsed, kUsed},
    {"parallel_tool_calls", kNone, kIgnored},
    {"prediction", kNone, kIgnored},
    {"presence_penalty", kUsed, kUsed},
    {"prompt", kUsed, kNone},
    {"prompt_cache_key", kNone, kIgnored},
    {"prompt_cache_retention", kNone, kIgnored},
    {"reasoning_effort", kNone, kIgnored},
    {"regex", kUsed, kUsed},
    {"repetition_penalty", kUsed, kUsed},
    {"response_format", kUsed, kUsed},
    {"safety_identifier", kNone, kIgnored},
    {"seed", kUsed, kUsed},
    {"service_tier", kNone, kIgnored},
    {"stop", kUsed, kUsed},
    {"store", kNone, kIgnored},
    {"stream", kUsed, kUsed},
    {"stream_options", kUsed, kUsed},
    {"suffix", kRefused, kNone},
    {"temperature", kUsed, kUsed},
    {"tool_choice", kNone, kIgnored},
    {"tools", kNone, kRefused},
    {"top_k", kUsed, kUsed},
    {"top_logprobs", kNone, kUsed},
    {"top_p", kUsed, kUsed},
    {"user", kUsed, kUsed},
    {"verbosity", kNone, kIgnored},
    {"verse", kUsed, kUsed},
    {"web_search_options", kNone, kRefused},
};

}  // namespace

std::span<const Parameter> Parameters() { return kParameters; }

ApiResult<void> CheckParameters(const JsonValue& body, bool chat) {
  for (const auto& [name, value] : body.members) {
    const auto known =
        std::find_if(std::begin(kParameters), std::end(kParameters),
                     [&, &wanted = name](const Parameter& p) { return p.name == wanted; });
    const Handling handling = known == std::end(kParameters) ? Handling::kUnknown
                              : chat                         ? known->chat
                                                             : known->completions;
    if (handling == Handling::kUnknown) {
      constexpr std::size_t kShown = 64;
      const std::string shown = name.substr(0, kShown);
      return ApiError(400, fmt::format("'{}' is not a parameter of this request", shown), shown,
                      "unknown_parameter");
    }
    if (handling == Handling::kRefused && value.kind != JsonValue::Kind::kNull) {
      return ApiError(400, fmt::format("'{}' is not supported by this server", name), name,
                      "unsupported_parameter");
    }
  }
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

}  // namespace kvasir::server
