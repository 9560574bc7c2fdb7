// Any bytes as regular expressions, and as texts for them.
#include "constraints/regex.h"

#include <cstddef>
#include <cstdint>

#include "constraints/grammar_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kvasir::constraints::FuzzParser(data, size, kvasir::constraints::CompileRegex);
  return 0;
}
