#include "cli/prompt_source.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/env.h"
#include "cli/generation.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "engine/prompt.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using engine::GenerateRequest;
using nlohmann::json;

// One line of a --prompts-file, being read.
class LineReader {
 public:
  explicit LineReader(Prompt& prompt) : prompt_(prompt) {}

  base::Result<void> Read(const json& object) {
    if (!object.is_object()) return Fault("an object with \"prompt\" is expected");
    if (!object.contains("prompt")) return Fault("\"prompt\" is missing");
    for (const auto& [key, value] : object.items()) {
      KV_TRY(Field(key, value));
    }
    return base::Success();
  }

 private:
  base::Error Fault(const std::string& message) const {
    return MakeError(ErrorCode::kBadData, "{}: {}", prompt_.source, message);
  }

  base::Result<void> Field(const std::string& key, const json& value) {
    if (key == "prompt") {
      if (!value.is_string()) return Fault("\"prompt\" must be a text");
      prompt_.text = value.get<std::string>();
      return base::Success();
    }
    if (key == "seed") {
      KV_TRY(const std::uint64_t seed, Whole(key, value, {}));
      prompt_.seed = seed;
      return base::Success();
    }
    if (key == "max_tokens") {
      KV_TRY(const std::uint64_t count, Whole(key, value, {.min = 1}));
      prompt_.overrides.push_back([count](GenerateRequest& r) { r.max_tokens = count; });
      return base::Success();
    }
    if (key == "top_k") {
      KV_TRY(const std::uint64_t k,
             Whole(key, value, {.max = std::numeric_limits<std::uint32_t>::max()}));
      prompt_.overrides.push_back(
          [k](GenerateRequest& r) { r.sampling.top_k = static_cast<std::uint32_t>(k); });
      return base::Success();
    }
    if (key == "stop") return Stops(value);
    return SamplingNumber(key, value);
  }

  base::Result<void> SamplingNumber(const std::string& key, const json& value) {
    float sampling::SamplingOptions::*field = nullptr;
    if (key == "temperature") field = &sampling::SamplingOptions::temperature;
    if (key == "top_p") field = &sampling::SamplingOptions::top_p;
    if (key == "min_p") field = &sampling::SamplingOptions::min_p;
    if (key == "repeat_penalty") field = &sampling::SamplingOptions::repeat_penalty;
    if (field == nullptr) return Fault(fmt::format("\"{}\" is not a known field", OneLine(key)));
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!(std::fabs(number) <= std::numeric_limits<float>::max())) {
      return Fault(fmt::format("\"{}\" must be a finite number", key));
    }
    prompt_.overrides.push_back(
        [field, number](GenerateRequest& r) { r.sampling.*field = static_cast<float>(number); });
    return base::Success();
  }

  base::Result<void> Stops(const json& value) {
    std::vector<std::string> stops;
    for (const json& stop : value.is_array() ? value : json::array({value})) {
      if (!stop.is_string()) return Fault("\"stop\" must be a text or a list of texts");
      stops.push_back(stop.get<std::string>());
    }
    prompt_.overrides.push_back([stops](GenerateRequest& r) { r.stops = stops; });
    return base::Success();
  }

  base::Result<std::uint64_t> Whole(const std::string& key, const json& value,
                                    UintRange range) const {
    const std::uint64_t number = value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
    if (!value.is_number_unsigned() || number < range.min || number > range.max) {
      return Fault(
          fmt::format("\"{}\" must be a whole number from {} to {}", key, range.min, range.max));
    }
    return number;
  }

  Prompt& prompt_;
};

base::Result<std::vector<Prompt>> ReadLines(const std::string& path) {
  KV_TRY(const auto file, base::Env::Default().Map(path));
  std::string_view rest = file->text();
  std::vector<Prompt> prompts;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Prompt prompt;
    prompt.source = fmt::format("'{}' line {}", path, number);
    prompt.from_file = true;
    const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded()) {
      return MakeError(ErrorCode::kBadData, "{}: this is not JSON", prompt.source);
    }
    KV_TRY(LineReader(prompt).Read(object));
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty()) {
    return MakeError(ErrorCode::kBadData, "'{}' holds no prompt: a JSON object a line is expected",
                     path);
  }
  return prompts;
}

}  // namespace

void AddPromptFlags(CLI::App* command, PromptFlags& flags) {
  CLI::Option* text =
      command->add_option("-p,--prompt", flags.prompt, "the text to continue; default: none")
          ->type_name("TEXT");
  CLI::Option* file = command
                          ->add_option("--prompt-file", flags.prompt_file,
                                       "file with the text; its last newline is not part of it")
                          ->type_name("FILE");
  CLI::Option* files =
      command
          ->add_option("--prompts-file", flags.prompts_file,
                       "file with a JSON object a line: {\"prompt\": \"…\", \"seed\": 7, …}")
          ->type_name("FILE");
  text->excludes(file)->excludes(files);
  file->excludes(files);
}

base::Result<std::vector<Prompt>> ReadPrompts(const PromptFlags& flags) {
  if (flags.prompts_file) return ReadLines(*flags.prompts_file);
  if (!flags.prompt_file) return std::vector<Prompt>{{flags.prompt, "the prompt", false, {}, {}}};
  KV_TRY(const auto file, base::Env::Default().Map(*flags.prompt_file));
  std::string_view text = file->text();
  if (text.ends_with('\n')) text.remove_suffix(1);
  return std::vector<Prompt>{
      {std::string(text), fmt::format("'{}'", *flags.prompt_file), true, {}, {}}};
}

base::Result<std::vector<base::TokenId>> TokensOfPrompt(const OpenModel& open,
                                                        const Prompt& prompt) {
  auto tokens = engine::PromptTokens(*open.loaded.tokenizer, prompt.text);
  if (tokens) return tokens;
  base::Error error = tokens.error();
  if (!prompt.from_file) error.code = ErrorCode::kUsage;
  error.message = fmt::format("{}: {}", prompt.source, error.message);
  return error;
}

void ApplyOverrides(const Prompt& prompt, engine::GenerateRequest& request) {
  for (const auto& override_field : prompt.overrides) override_field(request);
}

}  // namespace kvasir::cli
