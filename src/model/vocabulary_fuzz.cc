// A GGUF file of any bytes: its vocabulary is refused, or is a tokenizer that takes text and gives
// it back.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "formats/gguf_reader.h"
#include "model/vocabulary_reader.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using kvasir::tokenizer::Decode;
  const auto file = kvasir::formats::GgufFile::Parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) return 0;
  auto spec = kvasir::model::ReadVocabulary(file.value());
  if (!spec) return 0;
  auto vocabulary = kvasir::tokenizer::Vocabulary::Make(std::move(spec).value());
  if (!vocabulary) return 0;
  const auto tokenizer = kvasir::tokenizer::MakeTokenizer(std::move(vocabulary).value());
  if (!tokenizer) return 0;
  for (const char* text : {"", "a", " the <s> 春 \n12", "\xFF"}) {
    const auto ids = tokenizer.value()->Encode(text);
    if (!ids) continue;
    KV_CHECK(tokenizer.value()->vocabulary().CheckIds(ids.value()).has_value());
    KV_CHECK(Decode(tokenizer.value()->vocabulary(), ids.value()).value() == text);
  }
  return 0;
}
