// A folder that transformers wrote, as a GGUF file.
#ifndef KVASIR_MODEL_HF_FOLDER_H_
#define KVASIR_MODEL_HF_FOLDER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"

namespace kvasir::model {

// Whether `path` names a folder with config.json, or a safetensors file or index.
bool IsHfFolder(base::Env& env, const std::string& path);

// The bytes of the GGUF file that it converts to: config.json as metadata, tokenizer.json as
// vocabulary, tensors in the types they have. Read too, if they are there: tokenizer_config.json
// (eos_token, chat_template) and chat_template.jinja. Of the ends of a text the first of
// config.json is kept as eos, and of the others that of tokenizer_config.json, else the last, as
// eot. Requires IsHfFolder; errors as OpenAnyModelFile has them.
base::Result<std::vector<std::byte>> GgufOfHfFolder(base::Env& env, const std::string& path);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_HF_FOLDER_H_
