// For fuzz targets of the parsers: what must hold of any bytes.
#ifndef KVASIR_CONSTRAINTS_GRAMMAR_FUZZ_H_
#define KVASIR_CONSTRAINTS_GRAMMAR_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "constraints/constraint_compiler.h"

namespace kvasir::constraints {

// The first half of the input goes to compile(text), which gives an Error or a grammar whose states
// can be walked; the second half is a text for it.
template <typename Compile>
void FuzzParser(const std::uint8_t* data, std::size_t size, const Compile& compile) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t half = (size + 1) / 2;
  auto grammar = compile(input.substr(0, half));
  if (!grammar) {
    KV_CHECK(!grammar.error().message.empty());
    return;
  }
  Recognizer recognizer(std::move(grammar).value());
  KV_CHECK(recognizer.start() != kDeadState);
  const TextVerdict verdict = Judge(recognizer, input.substr(half, 64)).value();
  KV_CHECK(!verdict.complete || verdict.accepted);
}

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_GRAMMAR_FUZZ_H_
