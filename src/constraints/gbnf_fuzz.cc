// Any bytes as GBNF grammars, and as texts for them.
#include "constraints/gbnf.h"

#include <cstddef>
#include <cstdint>

#include "constraints/grammar_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kvasir::constraints::FuzzParser(data, size, kvasir::constraints::CompileGbnf);
  return 0;
}
