#include "cli/sampling_flags.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>

#include "cli/number_flags.h"

namespace kvasir::cli {

sampling::SamplingOptions SamplingFlags::options() const {
  sampling::SamplingOptions options;
  options.temperature = temperature;
  options.top_k = static_cast<std::uint32_t>(top_k);
  options.top_p = top_p;
  options.min_p = min_p;
  options.repeat_penalty = repeat_penalty;
  return options;
}

void AddSamplingFlags(CLI::App* command, SamplingFlags& flags) {
  AddFloat(command, "--temperature", flags.temperature, {},
           "divides the logits before softmax; 0 = always the most probable; default 0.8");
  AddUint(command, "--top-k", flags.top_k, {0, std::numeric_limits<std::uint32_t>::max()},
          "draw from the k most probable tokens; default 0 = off");
  AddFloat(command, "--top-p", flags.top_p, {.min = 0, .max = 1, .min_open = true},
           "draw from the smallest set whose probability reaches p; default 1 = off");
  AddFloat(command, "--min-p", flags.min_p, {.min = 0, .max = 1},
           "drop tokens less probable than this share of the best one; default 0 = off");
  AddFloat(command, "--repeat-penalty", flags.repeat_penalty, {.min = 0, .min_open = true},
           "above 1 makes tokens of the last 64 rarer; default 1 = off");
  AddUint(command, "--count", flags.count, {1, engine::kMaxChoices},
          "continuations of each prompt, all from one seed; default 1");
  AddUint(command, "--seed", flags.seed, {},
          "fixes every draw; default: a random one, reported on stderr");
}

nlohmann::ordered_json ToJson(const sampling::SamplingOptions& options) {
  // The double that has the float's own shortest digits: 0.8, not 0.800000011920929.
  const auto number = [](float value) {
    return std::strtod(fmt::format("{}", value).c_str(), nullptr);
  };
  return {{"temperature", number(options.temperature)},
          {"top_k", options.top_k},
          {"top_p", number(options.top_p)},
          {"min_p", number(options.min_p)},
          {"repeat_penalty", number(options.repeat_penalty)}};
}

}  // namespace kvasir::cli
