// What the tests of grammars share: is a text in the language, and can it be completed?
#ifndef KVASIR_CONSTRAINTS_LANGUAGE_TEST_UTIL_H_
#define KVASIR_CONSTRAINTS_LANGUAGE_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "constraints/recognizer.h"

namespace kvasir::constraints {

inline bool Accepts(Recognizer& recognizer, std::string_view text) {
  return recognizer.MayEnd(recognizer.Step(recognizer.start(), text));
}

inline bool AcceptsPrefix(Recognizer& recognizer, std::string_view text) {
  return recognizer.Step(recognizer.start(), text) != kDeadState;
}

// Whether some text of the language begins as the state's does, by trying every byte, breadth
// first, in at most `tries` states: what the invariant promises of every state that is not dead.
inline bool CanEnd(Recognizer& recognizer, StateId state, std::size_t tries = 20000) {
  std::map<StateId, bool> seen;
  std::vector<StateId> open = {state};
  for (std::size_t i = 0; i < open.size() && i < tries; ++i) {
    if (recognizer.MayEnd(open[i])) return true;
    for (int byte = 0; byte < 256; ++byte) {
      const StateId next = recognizer.Step(open[i], static_cast<std::uint8_t>(byte));
      if (next != kDeadState && seen.emplace(next, true).second) open.push_back(next);
    }
  }
  return false;
}

// A text of the language by a random walk over bytes; after `length` bytes it ends where it may.
// May be cut off after 100 times as many.
inline std::string RandomText(Recognizer& recognizer, std::mt19937_64& random, std::size_t length) {
  std::string text;
  StateId state = recognizer.start();
  while (text.size() < 100 * length) {
    if (recognizer.MayEnd(state) && (text.size() >= length || random() % 8 == 0)) break;
    std::vector<std::uint8_t> allowed;
    for (int byte = 0; byte < 256; ++byte) {
      if (recognizer.Step(state, static_cast<std::uint8_t>(byte)) != kDeadState) {
        allowed.push_back(static_cast<std::uint8_t>(byte));
      }
    }
    if (allowed.empty()) break;
    text += static_cast<char>(allowed[random() % allowed.size()]);
    state = recognizer.Step(state, static_cast<std::uint8_t>(text.back()));
  }
  return text;
}

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_LANGUAGE_TEST_UTIL_H_
