#include "model/hf_writer.h"

#include <filesystem>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "formats/printable.h"
#include "formats/safetensors_writer.h"
#include "model/file_tensors.h"
#include "model/gpt2_reader.h"
#include "model/in_file.h"
#include "model/llama_reader.h"
#include "model/vocabulary_reader.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using base::Result;
using tensor::DType;

Result<HfModelConfig> ReadModelConfig(const formats::GgufFile& file, std::size_t vocab) {
  KV_TRY(const auto architecture, file.metadata().GetString("general.architecture"));
  if (architecture == "gpt2") {
    KV_TRY(const auto config, ReadGpt2Config(file, vocab));
    return HfModelConfig(config);
  }
  for (const LlamaFamily family : {LlamaFamily::kLlama, LlamaFamily::kQwen2, LlamaFamily::kQwen3}) {
    if (architecture != ArchitectureName(family)) continue;
    KV_TRY(const auto config, ReadLlamaConfig(file, family, vocab));
    return HfModelConfig(config);
  }
  return base::MakeError(base::ErrorCode::kBadData,
                         "the architecture is {}; written as safetensors are gpt2, llama, qwen2 "
                         "and qwen3",
                         formats::Quoted(architecture));
}

DType WrittenAs(DType stored) { return stored <= DType::kBF16 ? stored : DType::kF32; }

std::uint64_t ContextOf(const HfModelConfig& config) {
  return std::visit([](const auto& c) { return c.context; }, config);
}

std::uint64_t HeadDimOf(const HfModelConfig& config) {
  const auto* gpt2 = std::get_if<Gpt2Config>(&config);
  return gpt2 ? gpt2->head_dim() : std::get<LlamaConfig>(config).head_dim;
}

Result<void> AddTensors(const formats::GgufFile& file, const HfModelConfig& config,
                        formats::SafetensorsWriter& writer) {
  const TensorSource source = FileSource(file);
  for (const HfTensor& tensor : HfTensors(config)) {
    const TensorSpec& spec = tensor.spec;
    KV_TRY(const DType stored, file.DTypeOf(*file.Find(spec.name)));
    KV_TRY(const auto values, source(spec));
    const DType dtype = WrittenAs(stored);
    auto bytes = tensor::ConvertFromF32(dtype, values);
    tensor::Shape shape = spec.shape;
    if (tensor.order != HfOrder::kSame) {
      bytes = Reordered(tensor, HfDirection::kFromGguf, tensor::BytesPerElement(dtype),
                        HeadDimOf(config), bytes);
    }
    if (tensor.order == HfOrder::kTransposed) shape = {shape[1], shape[0]};
    const bool head = tensor.name == kHfHeadName;
    writer.Add((head ? "" : std::string(HfPrefix(config))) + tensor.name, shape, dtype,
               std::move(bytes));
  }
  return base::Success();
}

std::string_view TorchName(DType dtype) {
  constexpr std::string_view kNames[] = {"float32", "float16", "bfloat16"};
  return kNames[static_cast<std::size_t>(dtype)];
}

// All but the writing: the texts of the small files.
struct Folder {
  std::string config, tokenizer, tokenizer_config;
  formats::SafetensorsWriter tensors;
};

Result<Folder> MakeFolder(const formats::GgufFile& file) {
  Folder folder;
  KV_TRY(const auto vocabulary, ReadVocabulary(file));
  KV_TRY(tokenizer::Vocabulary::Make(vocabulary));
  KV_TRY(const auto config, ReadModelConfig(file, vocabulary.pieces.size()));
  KV_TRY(const DType stored, file.DTypeOf(*file.Find("token_embd.weight")));
  KV_TRY(const auto chat, file.metadata().OptionalString("tokenizer.chat_template"));
  KV_TRY(folder.config, HfConfigText(config, vocabulary, TorchName(WrittenAs(stored))));
  KV_TRY(folder.tokenizer, HfTokenizerText(vocabulary));
  folder.tokenizer_config = HfTokenizerConfigText(vocabulary, ContextOf(config), chat.value_or(""));
  KV_TRY(AddTensors(file, config, folder.tensors));
  return folder;
}

}  // namespace

Result<void> WriteHfFolder(base::Env& env, const formats::GgufFile& file,
                           const std::string& folder) {
  auto made = MakeFolder(file);
  if (!made) return InFile(file.name(), made.error());
  const std::filesystem::path out(folder);
  KV_TRY(env.MakeDirectories(folder));
  KV_TRY(made.value().tensors.Write(env, (out / "model.safetensors").string()));
  const auto write = [&](const char* name, const std::string& text) {
    return base::WriteFileAtomic(env, (out / name).string(), text);
  };
  KV_TRY(write("tokenizer.json", made.value().tokenizer));
  KV_TRY(write("tokenizer_config.json", made.value().tokenizer_config));
  return write("config.json", made.value().config);
}

}  // namespace kvasir::model
