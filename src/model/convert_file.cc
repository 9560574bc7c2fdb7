#include "model/convert_file.h"

#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "formats/llama2c_model.h"
#include "formats/llama2c_tokenizer.h"
#include "kernels/softmax.h"
#include "model/in_file.h"
#include "model/llama2c_reader.h"
#include "model/model_file.h"
#include "tensor/convert.h"
#include "tokenizer/tokenizer.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;
using tensor::DType;

std::string_view Name(DType dtype) { return formats::InfoOf(formats::ToGgufType(dtype)).name; }

base::Result<void> CheckOut(const std::string& out) {
  const std::string extension = std::filesystem::path(out).extension().string();
  if (extension != ".bin" && extension != ".safetensors") return base::Success();
  return MakeError(ErrorCode::kUsage, "'{}' is named as a {} file; written is GGUF only", out,
                   extension);
}

// kBadData unless every value is finite, and still is in this type.
base::Result<void> CheckFits(std::string_view tensor, DType dtype, std::span<const float> values) {
  if (!kernels::AllFinite(values.data(), values.size())) {
    return MakeError(ErrorCode::kBadData, "tensor '{}' holds a number that is not finite", tensor);
  }
  std::vector<float> rounded(values.size());
  tensor::ConvertToF32(dtype, tensor::ConvertFromF32(dtype, values), rounded);
  if (kernels::AllFinite(rounded.data(), rounded.size())) return base::Success();
  return MakeError(ErrorCode::kBadData, "tensor '{}' holds a number too large for {}", tensor,
                   Name(dtype));
}

base::Result<void> AddConverted(const formats::GgufFile& file, const formats::GgufTensor& tensor,
                                std::optional<DType> wanted, formats::GgufWriter& writer) {
  KV_TRY(const DType stored, file.DTypeOf(tensor));
  const bool rounded = tensor.shape.rank() >= 2 && tensor.name != "position_embd.weight";
  const DType dtype = !wanted ? stored : rounded ? *wanted : DType::kF32;
  if (dtype == stored) {
    writer.AddTensorView(tensor.name, tensor.shape, dtype, tensor.data);
    return base::Success();
  }
  std::vector<float> values(tensor.shape.ElementCount().value());
  tensor::ConvertToF32(stored, tensor.data, values);
  KV_TRY(CheckFits(tensor.name, dtype, values));
  writer.AddTensor(tensor.name, tensor.shape, dtype, tensor::ConvertFromF32(dtype, values));
  return base::Success();
}

base::Result<void> ConvertGguf(base::Env& env, const std::string& in, const std::string& out,
                               const ConvertOptions& options) {
  KV_TRY(const auto file, formats::GgufFile::Open(env, in));
  if (!options.tokenizer.empty()) {
    return MakeError(ErrorCode::kUsage,
                     "a tokenizer was given, but '{}' is a GGUF file with its own", in);
  }
  formats::GgufWriter writer;
  for (const formats::GgufEntry& entry : file.metadata().entries()) {
    if (entry.key != "general.alignment") writer.Set(entry.key, entry.value);
  }
  if (options.dtype) writer.Set("general.file_type", FileType(*options.dtype));
  for (const formats::GgufTensor& tensor : file.tensors()) {
    auto added = AddConverted(file, tensor, options.dtype, writer);
    if (!added) return InFile(in, added.error());
  }
  return writer.Write(env, out);
}

base::Result<void> ConvertLlama2c(base::Env& env, const std::string& in, const std::string& out,
                                  const ConvertOptions& options) {
  const auto opened = formats::Llama2cModel::Open(env, in);
  if (!opened) return base::WithHint(opened.error(), "read are GGUF files and llama2.c's .bin");
  const formats::Llama2cModel& file = opened.value();
  if (options.tokenizer.empty()) {
    return base::WithHint(
        MakeError(ErrorCode::kUsage, "'{}' is a llama2.c model, which holds no vocabulary", in),
        "name its tokenizer.bin with --tokenizer FILE");
  }
  KV_TRY(const auto tokens, formats::ReadLlama2cTokenizer(env, options.tokenizer));
  auto vocabulary = VocabularyOfLlama2c(tokens, file.config().vocab);
  if (!vocabulary) return InFile(options.tokenizer, vocabulary.error());
  const auto checked = tokenizer::Vocabulary::Make(vocabulary.value());
  if (!checked) return InFile(options.tokenizer, checked.error());
  const auto config = ConfigOfLlama2c(file.config());
  if (!config) return InFile(in, config.error());
  const SaveOptions save = {.name = std::filesystem::path(in).stem().string(),
                            .dtype = options.dtype.value_or(DType::kF32)};
  const TensorSource numbers = SourceOfLlama2c(file);
  const TensorSource source = [&](const TensorSpec& spec) -> base::Result<std::span<const float>> {
    KV_TRY(const auto values, numbers(spec));
    if (spec.shape.rank() == 2) {
      KV_TRY(CheckFits(spec.name, save.dtype, values));
    }
    return values;
  };
  auto saved = SaveLlama(env, out, config.value(), vocabulary.value(), source, save);
  if (!saved && saved.error().code == ErrorCode::kBadData) return InFile(in, saved.error());
  return saved;
}

}  // namespace

base::Result<void> ConvertFile(base::Env& env, const std::string& in, const std::string& out,
                               const ConvertOptions& options) {
  KV_TRY(CheckOut(out));
  KV_TRY(const auto bytes, env.Map(in));
  const bool gguf = bytes->text().starts_with("GGUF");
  return gguf ? ConvertGguf(env, in, out, options) : ConvertLlama2c(env, in, out, options);
}

}  // namespace kvasir::model
