// Tokens back to text, whole characters only.
#ifndef KVASIR_TOKENIZER_STREAM_DECODER_H_
#define KVASIR_TOKENIZER_STREAM_DECODER_H_

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// Turns a stream of tokens into valid UTF-8 as it comes (Case C69). Bytes that no continuation can
// make valid come out as U+FFFD at once, one per maximal subpart (Unicode 15, §3.9); the beginning
// of a character waits for its rest, so at most 3 bytes are ever withheld. What it returns, joined,
// is the same however the bytes are cut. Tokens without bytes (control, unknown) change nothing.
// Single-threaded. The vocabulary must outlive it.
//
// Where the vocabulary has each text led by a space (add_space_prefix), a whole text's first byte,
// if a space, is that lead and is left out. What continues a text keeps its spaces.
class StreamDecoder {
 public:
  enum class From { kStart, kMiddle };  // Of the text.
  explicit StreamDecoder(const Vocabulary& vocabulary, From from = From::kMiddle)
      : vocabulary_(vocabulary),
        drops_space_(from == From::kStart && vocabulary.add_space_prefix()) {}

  // The characters completed by this token (requires id < vocabulary.size()) or by these bytes.
  std::string Append(TokenId id) { return Append(vocabulary_.Bytes(id)); }
  std::string Append(std::string_view bytes);

  // The end of the text: U+FFFD if the beginning of a character was waiting, else nothing.
  std::string Flush();

  std::size_t withheld_bytes() const { return pending_.size(); }  // <= 3

 private:
  const Vocabulary& vocabulary_;
  bool drops_space_;     // No byte has come yet, and the first may be the lead.
  std::string pending_;  // A proper prefix of a character.
};

// The whole text of ids, as a StreamDecoder gives it from kStart; kUsage naming an id that is not a
// token's. Thread-safe.
base::Result<std::string> Decode(const Vocabulary& vocabulary, std::span<const TokenId> ids);

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_STREAM_DECODER_H_
