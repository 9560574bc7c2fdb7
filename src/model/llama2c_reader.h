// Models and vocabularies of llama2.c as the model layer holds them.
#ifndef KVASIR_MODEL_LLAMA2C_READER_H_
#define KVASIR_MODEL_LLAMA2C_READER_H_

#include "base/result.h"
#include "formats/llama2c_model.h"
#include "formats/llama2c_tokenizer.h"
#include "model/llama_config.h"
#include "model/tensor_spec.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::model {

// The config that run.c computes with: RMSNorm's epsilon 1e-5, rotary base 10000 over pairs of
// neighbours, as GGUF's llama has them, so no row needs another place. The result is checked.
base::Result<LlamaConfig> ConfigOfLlama2c(const formats::Llama2cConfig& config);

// The tensors of LlamaTensors(config), by their GGUF names; kBadData for a number that is not
// finite. The file must outlive the source.
TensorSource SourceOfLlama2c(const formats::Llama2cModel& file);

// As llama2.c takes them: id 0 is unknown, 1 begins a text, 2 ends it, <0x00> … <0xFF> are bytes,
// an empty piece is unused; texts are led by the start token and a space. Stories follow one
// another in training with the start token between them, and run.c stops at it: it is the end of a
// turn here. kBadData if the tokens are not `vocab`, as many as the model's embedding has rows.
base::Result<tokenizer::VocabularySpec> VocabularyOfLlama2c(
    const formats::Llama2cTokenizer& tokenizer, std::uint64_t vocab);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_LLAMA2C_READER_H_
