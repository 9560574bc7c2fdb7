// Model files and folders of every kind that is read, all as GGUF files.
#ifndef KVASIR_MODEL_ANY_MODEL_FILE_H_
#define KVASIR_MODEL_ANY_MODEL_FILE_H_

#include <string>

#include "base/env.h"
#include "base/result.h"
#include "formats/gguf_reader.h"

namespace kvasir::model {

// A GGUF file as it is; of a folder with config.json, tokenizer.json and model.safetensors (or an
// index and its shards) the GGUF file that it converts to, held in memory: the bits of an answer
// cannot depend on which of the two is loaded. `path` may name the folder, or in it the safetensors
// file or the index. kIo; kBadData naming file, key or tensor, its value and what is allowed.
// Every size is checked against the files before memory is taken; that of a folder is its files'
// bytes, beside the copy.
base::Result<formats::GgufFile> OpenAnyModelFile(base::Env& env, const std::string& path);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_ANY_MODEL_FILE_H_
