// kvasir inspect FILE: what is in a model file.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/env.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "eval/model_summary.h"
#include "formats/gguf_reader.h"
#include "model/any_model_file.h"

namespace kvasir::cli {
namespace {

using formats::GgufFile;
using formats::GgufTensor;
using formats::GgufValue;
using nlohmann::ordered_json;

struct InspectFlags {
  std::string file;
  bool json = false;
};

std::string Readable(std::string_view text) { return OneLine(base::ReplaceInvalidUtf8(text)); }

ordered_json ToJson(const GgufValue& value) {
  if (value.is_array()) {  // A vocabulary has thousands of elements: its size says enough.
    return {{"array", formats::GgufValueTypeName(value.element_type)}, {"count", value.count}};
  }
  if (const auto flag = value.AsBool()) return *flag;
  if (const auto number = value.AsUint()) return *number;
  if (const auto number = value.AsInt()) return *number;
  if (const auto number = value.AsFloat()) return *number;
  return std::string(value.AsString().value_or(""));
}

template <typename T>
void AddIfKnown(ordered_json& json, const char* name, const std::optional<T>& value) {
  if (value) json[name] = *value;
}

ordered_json ToJson(const GgufFile& file, const eval::ModelSummary& summary) {
  ordered_json json = ordered_json::object();
  AddIfKnown(json, "architecture", summary.architecture);
  AddIfKnown(json, "layers", summary.layers);
  AddIfKnown(json, "heads", summary.heads);
  AddIfKnown(json, "kv_heads", summary.kv_heads);
  AddIfKnown(json, "embedding", summary.embedding);
  AddIfKnown(json, "context", summary.context);
  AddIfKnown(json, "vocab", summary.vocab);
  json["parameters"] = summary.parameters;
  AddIfKnown(json, "cache_bytes_per_token", summary.cache_bytes_per_token);
  json["gguf_version"] = file.version();
  auto metadata = ordered_json::object();
  for (const formats::GgufEntry& entry : file.metadata().entries()) {
    metadata[std::string(entry.key)] = ToJson(entry.value);
  }
  json["metadata"] = std::move(metadata);
  auto tensors = ordered_json::array();
  for (const GgufTensor& tensor : file.tensors()) {
    tensors.push_back({{"name", std::string(tensor.name)},
                       {"shape", tensor.shape.dims()},
                       {"dtype", formats::InfoOf(tensor.type).name}});
  }
  json["tensors"] = std::move(tensors);
  return json;
}

template <typename T>
void PrintIfKnown(const char* name, const std::optional<T>& value) {
  if (value) fmt::print("{:<23}{}\n", name, *value);
}

void PrintText(const GgufFile& file, const eval::ModelSummary& summary) {
  if (summary.architecture)
    fmt::print("{:<23}{}\n", "architecture", Readable(*summary.architecture));
  PrintIfKnown("layers", summary.layers);
  PrintIfKnown("heads", summary.heads);
  PrintIfKnown("kv heads", summary.kv_heads);
  PrintIfKnown("embedding", summary.embedding);
  PrintIfKnown("context", summary.context);
  PrintIfKnown("vocabulary", summary.vocab);
  fmt::print("{:<23}{}\n", "parameters", summary.parameters);
  PrintIfKnown("cache bytes per token", summary.cache_bytes_per_token);

  fmt::print("\nmetadata (GGUF version {})\n", file.version());
  for (const formats::GgufEntry& entry : file.metadata().entries()) {
    fmt::print("  {} = {}\n", Readable(entry.key), entry.value.ValueText());
  }
  std::size_t width = 0;
  for (const GgufTensor& tensor : file.tensors()) width = std::max(width, tensor.name.size());
  fmt::print("\n{} tensors\n", file.tensors().size());
  for (const GgufTensor& tensor : file.tensors()) {
    fmt::print("  {:<{}}  {:<5} {}\n", Readable(tensor.name), width,
               formats::InfoOf(tensor.type).name, tensor.shape.ToString());
  }
}

base::Result<int> RunInspect(const InspectFlags& flags) {
  KV_TRY(const auto file, model::OpenAnyModelFile(base::Env::Default(), flags.file));
  const eval::ModelSummary summary = eval::Summarize(file);
  if (flags.json) {
    PrintJson(ToJson(file, summary));
  } else {
    PrintText(file, summary);
  }
  return 0;
}

}  // namespace

void AddInspectCommand(CommandSet& commands) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command =
      commands.Add("inspect", "Metadata, tensors, parameters and cache bytes of a GGUF file",
                   "kvasir inspect models/tang-lesson.gguf");
  command->add_option("FILE", flags->file, "GGUF file")->required();
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunInspect(*flags); });
}

}  // namespace kvasir::cli
