// Any bytes as a file of the Llama family: refused in one line, or a model that runs.
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/llama_reader.h"
#include "model/model_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvasir::model;
  const auto file = kvasir::formats::GgufFile::Parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) return 0;
  for (LlamaFamily family : {LlamaFamily::kLlama, LlamaFamily::kQwen2, LlamaFamily::kQwen3}) {
    CheckReadModel(ReadLlama(file.value(), family, kFuzzVocab));
  }
  return 0;
}
