// Any bytes as a deepseek2 file: refused in one line, or a model that runs.
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/deepseek_reader.h"
#include "model/model_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using kvasir::model::kFuzzVocab;
  const auto file = kvasir::formats::GgufFile::Parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (file) kvasir::model::CheckReadModel(kvasir::model::ReadDeepseek(file.value(), kFuzzVocab));
  return 0;
}
