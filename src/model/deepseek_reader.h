// The deepseek2 architecture's metadata and tensors in a GGUF file.
#ifndef KVASIR_MODEL_DEEPSEEK_READER_H_
#define KVASIR_MODEL_DEEPSEEK_READER_H_

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "formats/gguf_reader.h"
#include "model/deepseek_model.h"

namespace kvasir::model {

// kBadData naming the key or tensor. vocab: tokens in the file's vocabulary, which the embedding
// must have as rows. Read are dense models, in the format's older form (key_length and value_length
// are those of heads) and its newer one (they are those of the cached entry, and key_length_mla and
// value_length_mla those of heads); W_uk and W_uv as attn_kv_b, or as attn_k_b and attn_v_b. Layers
// of experts, layers that predict further tokens, and yarn are refused by name, and so is a tensor
// that the pass would not use.
base::Result<std::unique_ptr<DeepseekModel>> ReadDeepseek(const formats::GgufFile& file,
                                                          std::size_t vocab);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_DEEPSEEK_READER_H_
