// The parser of grammars: any bytes end in an Error or in a grammar whose states can be
// walked; the first half of the input is the grammar, the second a text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "constraints/constraint_compiler.h"
#include "constraints/gbnf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvasir::constraints;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  auto grammar = CompileGbnf(input.substr(0, (size + 1) / 2));
  if (!grammar) {
    KV_CHECK(!grammar.error().message.empty());
    return 0;
  }
  Recognizer recognizer(std::move(grammar).value());
  KV_CHECK(recognizer.start() != kDeadState);
  const TextVerdict verdict = Judge(recognizer, input.substr((size + 1) / 2, 64)).value();
  KV_CHECK(!verdict.complete || verdict.accepted);
  return 0;
}
