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
#include "model/any_model_file.h"
#include "model/hf_folder.h"
#include "model/hf_writer.h"
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

base::Result<void> CheckOut(const std::string& out, const ConvertOptions& options) {
  const std::string extension = std::filesystem::path(out).extension().string();
  const bool safetensors = options.format == ModelFormat::kSafetensors;
  if (safetensors && options.dtype && tensor::BlockElements(*options.dtype) > 1) {
    return MakeError(ErrorCode::kUsage,
                     "safetensors hold no {}; allowed as their type are f32, f16 and bf16",
                     Name(*options.dtype));
  }
  if (safetensors && (extension == ".safetensors" || extension == ".gguf")) {
    return MakeError(ErrorCode::kUsage,
                     "'{}' is named as a {} file; a safetensors model is a folder", out, extension);
  }
  if (extension != ".bin" && extension != ".safetensors") return base::Success();
  return base::WithHint(
      MakeError(ErrorCode::kUsage, "'{}' is named as a {} file; written are GGUF files and folders",
                out, extension),
      "name a folder and --format safetensors");
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

// Of a matrix whose rows are no whole blocks of the type that is wanted.
bool IsKept(const TensorSpec& spec, DType wanted) {
  return wanted != WrittenType(spec, wanted) && DType::kF16 == WrittenType(spec, DType::kF16);
}

base::Result<void> AddConverted(const formats::GgufFile& file, const formats::GgufTensor& tensor,
                                std::optional<DType> wanted, formats::GgufWriter& writer,
                                ConvertReport& report) {
  KV_TRY(const DType stored, file.DTypeOf(tensor));
  DType dtype = stored;
  if (wanted) {
    const TensorSpec spec = {std::string(tensor.name), tensor.shape};
    if (IsKept(spec, *wanted)) {
      report.kept.push_back(spec.name);
    } else {
      dtype = WrittenType(spec, *wanted);
    }
  }
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

base::Result<ConvertReport> ConvertGguf(base::Env& env, const std::string& in,
                                        const std::string& out, const ConvertOptions& options) {
  KV_TRY(const auto file, OpenAnyModelFile(env, in));
  const bool safetensors = options.format == ModelFormat::kSafetensors;
  if (!options.tokenizer.empty()) {
    return MakeError(ErrorCode::kUsage, "a tokenizer was given, but '{}' has its own", in);
  }
  ConvertReport report;
  if (safetensors && !options.dtype) {
    KV_TRY(WriteHfFolder(env, file, out));
    return report;
  }
  formats::GgufWriter writer;
  for (const formats::GgufEntry& entry : file.metadata().entries()) {
    const bool stale = options.dtype && entry.key == "general.quantization_version";
    if (entry.key != "general.alignment" && !stale) writer.Set(entry.key, entry.value);
  }
  if (options.dtype) SetFileType(*options.dtype, writer);
  for (const formats::GgufTensor& tensor : file.tensors()) {
    auto added = AddConverted(file, tensor, options.dtype, writer, report);
    if (!added) return InFile(in, added.error());
  }
  if (safetensors) {
    KV_TRY(const auto bytes, writer.Encode());
    KV_TRY(const auto converted, formats::GgufFile::Parse(bytes, in));
    KV_TRY(WriteHfFolder(env, converted, out));
    return report;
  }
  KV_TRY(writer.Write(env, out));
  return report;
}

base::Result<ConvertReport> ConvertLlama2c(base::Env& env, const std::string& in,
                                           const std::string& out, const ConvertOptions& options) {
  if (options.format != ModelFormat::kGguf) {
    return MakeError(ErrorCode::kUsage,
                     "'{}' is no GGUF file and no folder; only such are written as safetensors",
                     in);
  }
  const auto opened = formats::Llama2cModel::Open(env, in);
  if (!opened) {
    return base::WithHint(opened.error(),
                          "read are GGUF files, llama2.c's .bin, and folders with config.json, "
                          "tokenizer.json and model.safetensors");
  }
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
      KV_TRY(CheckFits(spec.name, WrittenType(spec, save.dtype), values));
    }
    return values;
  };
  auto saved = SaveLlama(env, out, config.value(), vocabulary.value(), source, save);
  if (!saved && saved.error().code == ErrorCode::kBadData) return InFile(in, saved.error());
  if (!saved) return saved.error();
  ConvertReport report;
  for (const TensorSpec& spec : LlamaTensors(config.value())) {
    if (IsKept(spec, save.dtype)) report.kept.push_back(spec.name);
  }
  return report;
}

}  // namespace

base::Result<ConvertReport> ConvertFile(base::Env& env, const std::string& in,
                                        const std::string& out, const ConvertOptions& options) {
  KV_TRY(CheckOut(out, options));
  if (IsHfFolder(env, in)) return ConvertGguf(env, in, out, options);
  KV_TRY(const auto bytes, env.Map(in));
  const bool gguf = bytes->text().starts_with("GGUF");
  return gguf ? ConvertGguf(env, in, out, options) : ConvertLlama2c(env, in, out, options);
}

}  // namespace kvasir::model
