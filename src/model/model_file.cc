#include "model/model_file.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/gguf_reader.h"
#include "formats/printable.h"
#include "model/any_model_file.h"
#include "model/deepseek_reader.h"
#include "model/gpt2_reader.h"
#include "model/in_file.h"
#include "model/llama_reader.h"
#include "model/vocabulary_reader.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;

struct OpenFile {
  formats::GgufFile file;
  std::string architecture;
  std::string name;
};

base::Result<OpenFile> OpenModelFile(base::Env& env, const std::string& path) {
  KV_TRY(auto file, OpenAnyModelFile(env, path));
  KV_TRY(const auto architecture, file.metadata().GetString("general.architecture"));
  KV_TRY(const auto name, file.metadata().OptionalString("general.name"));
  std::string label = name ? std::string(*name) : std::filesystem::path(path).stem().string();
  return OpenFile{std::move(file), std::string(architecture), std::move(label)};
}

base::Result<std::unique_ptr<Model>> ReadModel(const OpenFile& open, std::size_t vocab) {
  if (open.architecture == "gpt2") {
    KV_TRY(auto model, ReadGpt2(open.file, vocab));
    return std::unique_ptr<Model>(std::move(model));
  }
  for (const LlamaFamily family : {LlamaFamily::kLlama, LlamaFamily::kQwen2, LlamaFamily::kQwen3}) {
    if (open.architecture != ArchitectureName(family)) continue;
    KV_TRY(auto model, ReadLlama(open.file, family, vocab));
    return std::unique_ptr<Model>(std::move(model));
  }
  if (open.architecture == "deepseek2") {
    KV_TRY(auto model, ReadDeepseek(open.file, vocab));
    return std::unique_ptr<Model>(std::move(model));
  }
  return MakeError(ErrorCode::kBadData,
                   "the architecture is {}; supported are gpt2, llama, qwen2, qwen3 and deepseek2",
                   formats::Quoted(open.architecture));
}

}  // namespace

tensor::DType WrittenType(const TensorSpec& spec, tensor::DType wanted) {
  const std::size_t rank = spec.shape.rank();
  if (rank < 2 || spec.name == "position_embd.weight") return tensor::DType::kF32;
  return spec.shape[rank - 1] % tensor::BlockElements(wanted) == 0 ? wanted : tensor::DType::kF32;
}

void SetFileType(tensor::DType dtype, formats::GgufWriter& writer) {
  // Numbers of the GGUF specification for files mostly f32, f16, bf16, Q8_0, Q4_0.
  constexpr std::uint32_t kFileTypes[] = {0, 1, 32, 7, 2};
  KV_CHECK(tensor::IsWritten(dtype));
  writer.Set("general.file_type", kFileTypes[static_cast<std::size_t>(dtype)]);
  // Of the layout of blocks; 2 is the present one.
  if (tensor::BlockElements(dtype) > 1) writer.Set("general.quantization_version", 2u);
}

base::Result<LoadedGpt2> LoadGpt2(base::Env& env, const std::string& path) {
  KV_TRY(auto open, OpenModelFile(env, path));
  if (open.architecture != "gpt2") {
    return MakeError(ErrorCode::kBadData, "'{}' holds a model of architecture {}; needed is gpt2",
                     path, formats::Quoted(open.architecture));
  }
  auto vocabulary = ReadVocabulary(open.file);
  if (!vocabulary) return InFile(path, vocabulary.error());
  auto model = ReadGpt2(open.file, vocabulary.value().pieces.size());
  if (!model) return InFile(path, model.error());
  return LoadedGpt2{std::move(open.name), std::move(model.value()), std::move(vocabulary.value())};
}

base::Result<LoadedModel> LoadModel(base::Env& env, const std::string& path) {
  KV_TRY(auto open, OpenModelFile(env, path));
  auto spec = ReadVocabulary(open.file);
  if (!spec) return InFile(path, spec.error());
  auto model = ReadModel(open, spec.value().pieces.size());
  if (!model) return InFile(path, model.error());
  auto vocabulary = tokenizer::Vocabulary::Make(std::move(spec.value()));
  if (!vocabulary) return InFile(path, vocabulary.error());
  auto made = tokenizer::MakeTokenizer(std::move(vocabulary.value()));
  if (!made) return InFile(path, made.error());
  return LoadedModel{std::move(open.name), std::move(model.value()), std::move(made.value())};
}

}  // namespace kvasir::model
