// The tokenizer.ggml.* metadata of a GGUF file.
#ifndef KVASIR_MODEL_VOCABULARY_READER_H_
#define KVASIR_MODEL_VOCABULARY_READER_H_

#include "base/result.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::model {

// kBadData naming the key. Read and written are the kinds "llama" (SentencePiece) and "gpt2"
// (byte-level, with the pre-tokenizers gpt-2, llama-bpe and qwen2).
base::Result<tokenizer::VocabularySpec> ReadVocabulary(const formats::GgufFile& file);
void WriteVocabulary(const tokenizer::VocabularySpec& spec, formats::GgufWriter& writer);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_VOCABULARY_READER_H_
