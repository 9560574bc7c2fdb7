// kvasir convert IN OUT: a model file of another format, or of another element type, as GGUF.
#include <memory>
#include <optional>
#include <string>

#include "base/env.h"
#include "cli/command.h"
#include "model/convert_file.h"

namespace kvasir::cli {
namespace {

struct ConvertFlags {
  std::string in;
  std::string out;
  std::string tokenizer;
  std::string dtype;  // Empty: not given.
};

std::optional<tensor::DType> DTypeOf(const std::string& name) {
  if (name == "f32") return tensor::DType::kF32;
  if (name == "f16") return tensor::DType::kF16;
  if (name == "bf16") return tensor::DType::kBF16;
  return std::nullopt;
}

base::Result<int> RunConvert(const ConvertFlags& flags) {
  KV_TRY(model::ConvertFile(base::Env::Default(), flags.in, flags.out,
                            {.tokenizer = flags.tokenizer, .dtype = DTypeOf(flags.dtype)}));
  return 0;
}

}  // namespace

void AddConvertCommand(CommandSet& commands) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App* command =
      commands.Add("convert", "Write a GGUF file from llama2.c's .bin, or with another dtype",
                   "kvasir convert stories260K.bin stories.gguf --tokenizer tok512.bin");
  command->add_option("IN", flags->in, "model file: GGUF, or llama2.c's .bin")->required();
  command->add_option("OUT", flags->out, "GGUF file to write")->required();
  command->add_option("--tokenizer", flags->tokenizer, "tokenizer.bin of a .bin model")
      ->type_name("FILE");
  command
      ->add_option("--dtype", flags->dtype,
                   "of matrices: f32, f16, bf16; default: as in a GGUF file, f32 from others")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  commands.OnRun(command, [flags] { return RunConvert(*flags); });
}

}  // namespace kvasir::cli
