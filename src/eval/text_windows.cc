#include "eval/text_windows.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::eval {

std::vector<TextWindow> CutTextWindows(std::size_t tokens, std::size_t context,
                                       std::size_t stride) {
  KV_CHECK(tokens >= 2 && stride >= 1 && stride <= context);
  std::vector<TextWindow> windows;
  const std::size_t predicted = tokens - 1;
  for (std::size_t start = 0; windows.empty() || start + context - stride < predicted;
       start += stride) {
    windows.push_back(
        {start, std::min(context, predicted - start), windows.empty() ? 0 : context - stride});
  }
  return windows;
}

}  // namespace kvasir::eval
