// How a step's tokens are divided among the sequences that run.
#ifndef KVASIR_ENGINE_STEP_GRANTS_H_
#define KVASIR_ENGINE_STEP_GRANTS_H_

#include <cstddef>
#include <span>
#include <vector>

namespace kvasir::engine {

struct TokenWant {
  const void* client = nullptr;  // Compared only.
  std::size_t tokens = 0;        // At most so many can be computed.
  bool decoding = false;         // It has decided a token in the step before.
};

// Tokens each sequence computes, within the budget. A decoding sequence that wants any gets at
// least one, so it waits for no prompt; what is left is divided evenly among the clients that still
// want some, what one does not use going to the others; within a client the first comes first. Uses
// the whole budget, or gives all what they want. Requires a budget of at least the number of
// sequences.
std::vector<std::size_t> GrantTokens(std::span<const TokenWant> wants, std::size_t budget);

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_STEP_GRANTS_H_
