// How a text longer than the context is cut so that every token is predicted once.
#ifndef KVASIR_EVAL_TEXT_WINDOWS_H_
#define KVASIR_EVAL_TEXT_WINDOWS_H_

#include <cstddef>
#include <vector>

namespace kvasir::eval {

// Input tokens [start, start + inputs) of a text, of whose predictions the first `skip` were made
// by an earlier window. Input i predicts token i + 1.
struct TextWindow {
  std::size_t start = 0;
  std::size_t inputs = 0;
  std::size_t skip = 0;
  friend bool operator==(const TextWindow&, const TextWindow&) = default;
};

// Windows of `context` inputs, `stride` apart: every token but the first is predicted once, by the
// first window that reaches it. No window is longer than the one before. Requires tokens >= 2 and
// 1 <= stride <= context.
std::vector<TextWindow> CutTextWindows(std::size_t tokens, std::size_t context, std::size_t stride);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_TEXT_WINDOWS_H_
