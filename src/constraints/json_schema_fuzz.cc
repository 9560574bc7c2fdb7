// The reader of JSON Schema: any bytes end in an Error or in a grammar; a random walk along what it
// allows ends nowhere but where a text may end, and what it wrote is JSON.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "constraints/json_schema.h"
#include "constraints/json_value.h"
#include "constraints/recognizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvasir::constraints;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  auto grammar =
      CompileJsonSchema(input, {.assert_formats = size % 2 == 0, .compact = size % 3 == 0});
  if (!grammar) return 0;
  Recognizer recognizer(std::move(grammar).value());
  std::string text;
  StateId state = recognizer.start();
  for (std::size_t i = 0; i < 60 && recognizer.MayContinue(state); ++i) {
    // The input chooses where to begin looking for a byte that may come next.
    StateId next = kDeadState;
    for (unsigned byte = data[i % size], tries = 0; next == kDeadState; ++byte, ++tries) {
      KV_CHECK(tries < 256);
      next = recognizer.Step(state, static_cast<std::uint8_t>(byte));
      if (next != kDeadState) text += static_cast<char>(byte);
    }
    state = next;
    if (!recognizer.MayEnd(state)) continue;
    KV_CHECK(ParseJson("text", text).has_value() || text.find('{') != std::string::npos ||
             text.find_first_of("eE") != std::string::npos);
  }
  KV_CHECK(recognizer.MayContinue(state) || recognizer.MayEnd(state));
  return 0;
}
