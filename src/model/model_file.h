// Model files: GGUF (and what any_model_file.h reads as such) in, GGUF out, as config, weights and
// tokenizer.
#ifndef KVASIR_MODEL_MODEL_FILE_H_
#define KVASIR_MODEL_MODEL_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/env.h"
#include "base/result.h"
#include "formats/gguf_writer.h"
#include "model/deepseek_config.h"
#include "model/gpt2_config.h"
#include "model/gpt2_model.h"
#include "model/llama_config.h"
#include "model/model.h"
#include "tensor/dtype.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::model {

struct LoadedModel {
  std::string name;  // general.name, or the file's name.
  std::unique_ptr<Model> model;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
};

// kIo, or kBadData naming the file, the key or tensor, its value and what is allowed. Every size is
// checked against the file before memory is taken.
base::Result<LoadedModel> LoadModel(base::Env& env, const std::string& path);

// For the trainer: the same, and the concrete GPT-2.
struct LoadedGpt2 {
  std::string name;
  std::unique_ptr<Gpt2Model> model;
  tokenizer::VocabularySpec vocabulary;
};
base::Result<LoadedGpt2> LoadGpt2(base::Env& env, const std::string& path);

struct SaveOptions {
  std::string name;                           // general.name
  tensor::DType dtype = tensor::DType::kF32;  // Of matrices; see WrittenType.
};

// The type of this tensor where matrices are wanted in that one (tensor::IsWritten): vectors and
// position embeddings stay f32, and so do matrices whose rows are no whole blocks of it.
tensor::DType WrittenType(const TensorSpec& spec, tensor::DType wanted);

// Metadata that say in which type most matrices are: general.file_type, and for block types
// general.quantization_version. Requires a type that is written.
void SetFileType(tensor::DType dtype, formats::GgufWriter& writer);

// Writes a gpt2 GGUF file, whole or not at all. source gives each tensor once, in order.
base::Result<void> SaveGpt2(base::Env& env, const std::string& path, const Gpt2Config& config,
                            const tokenizer::VocabularySpec& vocabulary, const TensorSource& source,
                            const SaveOptions& options);

// The same for llama, qwen2 and qwen3.
base::Result<void> SaveLlama(base::Env& env, const std::string& path, const LlamaConfig& config,
                             const tokenizer::VocabularySpec& vocabulary,
                             const TensorSource& source, const SaveOptions& options);

// The same for deepseek2, in the format's newer form (deepseek_reader.h).
base::Result<void> SaveDeepseek(base::Env& env, const std::string& path,
                                const DeepseekConfig& config,
                                const tokenizer::VocabularySpec& vocabulary,
                                const TensorSource& source, const SaveOptions& options);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_MODEL_FILE_H_
