// Model folders as transformers reads them: config.json, tokenizer.json, tokenizer_config.json and
// model.safetensors.
#ifndef KVASIR_MODEL_HF_WRITER_H_
#define KVASIR_MODEL_HF_WRITER_H_

#include <string>
#include <string_view>

#include "base/env.h"
#include "base/result.h"
#include "formats/gguf_reader.h"
#include "model/hf_tensors.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::model {

// Writes a gpt2, llama, qwen2 or qwen3 file as a folder, which it makes if need be: matrices of
// f32, f16 and bf16 in the type they have, block types and all else as f32. OpenAnyModelFile of the
// folder gives a model with the same bits (of f32, f16 and bf16) and a tokenizer that cuts every
// text alike; unused tokens lose their names, and scores become ranks. config.json comes last, so
// that what was not finished is no model folder. kIo; kBadData for a file that is wrong, or that
// the formats have no words for (naming what).
base::Result<void> WriteHfFolder(base::Env& env, const formats::GgufFile& file,
                                 const std::string& folder);

// The parts. kBadData naming what a config.json or tokenizer.json cannot say.
base::Result<std::string> HfConfigText(const HfModelConfig& config,
                                       const tokenizer::VocabularySpec& vocabulary,
                                       std::string_view torch_dtype);
base::Result<std::string> HfTokenizerText(const tokenizer::VocabularySpec& vocabulary);
std::string HfTokenizerConfigText(const tokenizer::VocabularySpec& vocabulary,
                                  std::uint64_t context, std::string_view chat_template);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_HF_WRITER_H_
