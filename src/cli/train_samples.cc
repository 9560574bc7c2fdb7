#include "cli/train_samples.h"

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/json_output.h"
#include "engine/generator.h"
#include "engine/prompt.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

std::string LineOf(const Sample& sample) {
  return DumpLine({{"step", sample.step}, {"prompt", sample.prompt}, {"text", sample.text}}) + "\n";
}

// Nothing if the line is no sample.
std::optional<Sample> ParseLine(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_unsigned()) {
    return std::nullopt;
  }
  for (const char* key : {"prompt", "text"}) {
    if (!json.contains(key) || !json[key].is_string()) return std::nullopt;
  }
  return Sample{json["step"].get<std::uint64_t>(), json["prompt"].get<std::string>(),
                json["text"].get<std::string>()};
}

// The samples of a file up to a step; a last line that a crash cut is none.
base::Result<std::vector<Sample>> ReadSamples(base::Env& env, const std::string& path,
                                              std::uint64_t steps_done) {
  std::vector<Sample> samples;
  if (steps_done == 0 || !env.Exists(path)) return samples;
  KV_TRY(const auto file, env.Map(path));
  std::string_view rest = file->text();
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
    std::optional<Sample> sample = ParseLine(rest.substr(0, end));
    if (!sample) {
      return WithHint(MakeError(ErrorCode::kBadData,
                                "'{}' is not the list of samples of a training run, so it is not "
                                "continued",
                                path),
                      "name another folder with --report");
    }
    if (sample->step <= steps_done) samples.push_back(*std::move(sample));
    rest.remove_prefix(end + 1);
  }
  return samples;
}

}  // namespace

base::Result<std::vector<engine::ChoiceResult>> DrawSamples(const model::Model& model,
                                                            const tokenizer::Tokenizer& tokenizer,
                                                            base::ThreadTeam& team,
                                                            const SampleSettings& settings) {
  const tokenizer::Vocabulary& vocabulary = tokenizer.vocabulary();
  engine::GenerateRequest request;
  KV_TRY(request.prompt, engine::PromptTokens(tokenizer, settings.prompt));
  request.max_tokens = settings.tokens;
  request.sampling.temperature = settings.temperature;
  request.seed = settings.seed;
  request.choices = settings.count;
  for (const auto& end : {vocabulary.eos(), vocabulary.eot()}) {
    if (end) request.end_tokens.push_back(*end);
  }
  KV_TRY(const auto generator, engine::Generator::Make(model, vocabulary, team, {}));
  KV_TRY(engine::GenerateReport report, generator->Run({&request, 1}));
  return std::move(report.results.front().choices);
}

base::Result<SampleLog> SampleLog::Open(base::Env& env, const std::string& path,
                                        std::uint64_t steps_done) {
  SampleLog log(path);
  KV_TRY(log.samples_, ReadSamples(env, path, steps_done));
  std::string kept;
  for (const Sample& sample : log.samples_) kept += LineOf(sample);
  KV_TRY(base::WriteFileAtomic(env, path, kept));
  return log;
}

base::Result<void> SampleLog::Add(Sample sample) {
  const std::string line = LineOf(sample);
  samples_.push_back(std::move(sample));
  std::FILE* file = std::fopen(path_.c_str(), "ae");
  const bool written = file && std::fputs(line.c_str(), file) != EOF;
  const bool closed = file && std::fclose(file) == 0;
  if (written && closed) return base::Success();
  return MakeError(ErrorCode::kIo, "cannot write '{}': {}", path_,
                   std::generic_category().message(errno));
}

}  // namespace kvasir::cli
