// The llama, qwen2 and qwen3 architectures' metadata and tensors in a GGUF file.
#ifndef KVASIR_MODEL_LLAMA_READER_H_
#define KVASIR_MODEL_LLAMA_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf_reader.h"
#include "model/llama_model.h"

namespace kvasir::model {

// A model's sliding windows by layer (0: sees all), or nothing if `key` is not there: one window,
// and which layers have it: all of them, unless KEY_pattern is a number n (every n-th layer sees
// all) or a list of bools, one a layer (true: the layer has the window). kBadData naming the key.
base::Result<std::vector<std::uint64_t>> ReadWindows(const formats::GgufMetadata& metadata,
                                                     const std::string& key, std::size_t layers);

// kBadData naming the key or tensor. vocab: tokens in the file's vocabulary, which the embedding
// must have as rows. A file without output.weight has a tied head, one with blk.0.attn_q.bias has
// biases (the format's conventions); a tensor that the pass would not use is refused, since leaving
// it out would compute another model.
base::Result<LlamaConfig> ReadLlamaConfig(const formats::GgufFile& file, LlamaFamily family,
                                          std::size_t vocab);
// The same, and the model.
base::Result<std::unique_ptr<LlamaModel>> ReadLlama(const formats::GgufFile& file,
                                                    LlamaFamily family, std::size_t vocab);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_LLAMA_READER_H_
