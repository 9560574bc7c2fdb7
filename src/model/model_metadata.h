// The metadata of a model's GGUF file: all but its tensors.
#ifndef KVASIR_MODEL_MODEL_METADATA_H_
#define KVASIR_MODEL_MODEL_METADATA_H_

#include "formats/gguf_writer.h"
#include "model/gpt2_config.h"
#include "model/llama_config.h"
#include "model/model_file.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::model {

// Of gpt2: name, sizes, vocabulary, and in which type most matrices are.
void SetGpt2Metadata(const Gpt2Config& config, const tokenizer::VocabularySpec& vocabulary,
                     const SaveOptions& options, formats::GgufWriter& writer);

// The same of llama, qwen2 and qwen3. With config.rope.divisors it adds their tensor.
void SetLlamaMetadata(const LlamaConfig& config, const tokenizer::VocabularySpec& vocabulary,
                      const SaveOptions& options, formats::GgufWriter& writer);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_MODEL_METADATA_H_
