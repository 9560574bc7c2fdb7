// The gpt2 architecture's metadata and tensors in a GGUF file.
#ifndef KVASIR_MODEL_GPT2_READER_H_
#define KVASIR_MODEL_GPT2_READER_H_

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "formats/gguf_reader.h"
#include "model/gpt2_model.h"

namespace kvasir::model {

// kBadData naming the key or tensor. vocab: tokens in the file's vocabulary, which the embedding
// must have as rows. A file without output.weight has a tied head (the format's convention).
base::Result<Gpt2Config> ReadGpt2Config(const formats::GgufFile& file, std::size_t vocab);
// The same, and the model.
base::Result<std::unique_ptr<Gpt2Model>> ReadGpt2(const formats::GgufFile& file, std::size_t vocab);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_GPT2_READER_H_
