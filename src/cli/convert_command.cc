// kvasir convert IN OUT: a model between formats, or of another element type.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "model/convert_file.h"
#include "tensor/dtype.h"

namespace kvasir::cli {
namespace {

struct ConvertFlags {
  std::string in;
  std::string out;
  std::string tokenizer;
  std::string dtype;  // Empty: not given.
  std::string format = "gguf";
};

// By tensor::DType.
const std::vector<std::string> kDTypeNames = {"f32", "f16", "bf16", "q8_0", "q4_0"};

std::optional<tensor::DType> DTypeOf(const std::string& name) {
  const auto found = std::find(kDTypeNames.begin(), kDTypeNames.end(), name);
  if (found == kDTypeNames.end()) return std::nullopt;
  return static_cast<tensor::DType>(found - kDTypeNames.begin());
}

base::Result<int> RunConvert(const ConvertFlags& flags) {
  const auto dtype = DTypeOf(flags.dtype);
  const auto format =
      flags.format == "gguf" ? model::ModelFormat::kGguf : model::ModelFormat::kSafetensors;
  KV_TRY(const auto report,
         model::ConvertFile(base::Env::Default(), flags.in, flags.out,
                            {.format = format, .tokenizer = flags.tokenizer, .dtype = dtype}));
  if (!report.kept.empty()) {
    fmt::print(stderr,
               "kvasir: note: rows of {} of {} matrices ({} first) are no whole blocks of {} "
               "numbers, which {} needs: kept as they are\n",
               report.kept.size(), flags.out, OneLine(report.kept.front()),
               tensor::BlockElements(*dtype), flags.dtype);
  }
  return 0;
}

}  // namespace

void AddConvertCommand(CommandSet& commands) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App* command = commands.Add(
      "convert", "A model as GGUF or as a safetensors folder, from either or llama2.c's .bin",
      "kvasir convert stories260K.bin stories.gguf --tokenizer tok512.bin");
  command
      ->add_option("IN", flags->in,
                   "GGUF file; folder with config.json, tokenizer.json, model.safetensors; or .bin")
      ->required();
  command
      ->add_option("OUT", flags->out, "GGUF file, or with --format safetensors a folder, to write")
      ->required();
  command->add_option("--tokenizer", flags->tokenizer, "tokenizer.bin of a .bin model")
      ->type_name("FILE");
  command
      ->add_option("--dtype", flags->dtype,
                   "of matrices: f32, f16, bf16, q8_0, q4_0; default: as they are, f32 from a .bin")
      ->check(CLI::IsMember(kDTypeNames));
  command->add_option("--format", flags->format, "of OUT: gguf, safetensors")
      ->check(CLI::IsMember({"gguf", "safetensors"}))
      ->capture_default_str();
  commands.OnRun(command, [flags] { return RunConvert(*flags); });
}

}  // namespace kvasir::cli
