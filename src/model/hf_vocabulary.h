// The vocabulary in a tokenizer.json, as the tokenizers here take it.
#ifndef KVASIR_MODEL_HF_VOCABULARY_H_
#define KVASIR_MODEL_HF_VOCABULARY_H_

#include <cstdint>
#include <string>

#include "base/result.h"
#include "formats/tokenizer_json.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::model {

// Byte-level encodings whose regular expression is GPT-2's, Llama 3's or Qwen2's become a
// kByteLevel vocabulary; those with byte_fallback, and ▁ for a space or spaces as such, a
// kSentencePiece one, if every two tokens that make a third have a merge, and merges that make one
// token stand together: such a vocabulary joins by the score of what is made, and only then cuts
// every text alike. (Merges that make one token tie; here the leftmost goes first, there the first
// in the list.) Others are refused by what they lack. Ids up to `rows`, the model's embedding, that
// no token has become unused ones. bos and add_bos, eos and add_eos are set as the template says;
// ids are not checked against each other (Vocabulary::Make). kBadData naming the file, what is
// wrong and what is allowed.
base::Result<tokenizer::VocabularySpec> VocabularyOfJson(const formats::TokenizerJson& file,
                                                         std::uint64_t rows);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_HF_VOCABULARY_H_
