// Reads vocabularies of llama2.c (tokenizer.bin).
//
// Source: llama2.c (Karpathy), tokenizer.py and run.c: the length of the longest piece (int32),
// then for each token its score (f32), its length in bytes (int32) and its bytes, little-endian.
#ifndef KVASIR_FORMATS_LLAMA2C_TOKENIZER_H_
#define KVASIR_FORMATS_LLAMA2C_TOKENIZER_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"

namespace kvasir::formats {

struct Llama2cTokenizer {
  std::vector<std::string> pieces;  // [tokens]; any bytes, a space is a space.
  std::vector<float> scores;        // [tokens]; any number.
};

// kIo if the file cannot be read, kBadData (naming file, value, what is allowed and offset) if it
// is not of the kind above. The file holds tokens up to its end: how many there should be is the
// model's to say.
base::Result<Llama2cTokenizer> ReadLlama2cTokenizer(base::Env& env, const std::string& path);
// The same from bytes; `name` stands in messages.
base::Result<Llama2cTokenizer> ParseLlama2cTokenizer(std::span<const std::byte> bytes,
                                                     std::string_view name);

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_LLAMA2C_TOKENIZER_H_
