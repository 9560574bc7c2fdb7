// Model files into others: of another format, or another element type.
#ifndef KVASIR_MODEL_CONVERT_FILE_H_
#define KVASIR_MODEL_CONVERT_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace kvasir::model {

enum class ModelFormat {
  kGguf,
  kSafetensors,  // A folder, as hf_writer.h has it.
};

struct ConvertOptions {
  ModelFormat format = ModelFormat::kGguf;  // Of what is written.

  std::string tokenizer;  // Of a .bin file: its tokenizer.bin. Empty: none was given.
  // Of matrices, position embeddings apart; all else is f32. One that is written
  // (tensor::IsWritten; of kSafetensors no block type). Nothing: as in the file, but f32 from a
  // .bin and, as kSafetensors, from block types.
  std::optional<tensor::DType> dtype;
};

struct ConvertReport {
  // Matrices whose rows are no whole blocks of the type asked for: they keep the type they have in
  // a GGUF file, and are f32 from others.
  std::vector<std::string> kept;
};

// Writes the model of `in`, a GGUF file of any architecture, a folder (hf_folder.h) or llama2.c's
// .bin, to `out`, a file whole or not at all; they may be the same. Metadata are kept in GGUF.
// kUsage: a tokenizer is missing, or given where the file has its own; out is named as a format
// that is not written. kIo; kBadData for a file that is wrong, a tensor of a type that is only
// recognised, a number that is not finite or does not fit the element type.
base::Result<ConvertReport> ConvertFile(base::Env& env, const std::string& in,
                                        const std::string& out, const ConvertOptions& options);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_CONVERT_FILE_H_
