#include "eval/text_windows.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvasir::eval {
namespace {

TEST(TextWindowsTest, EveryTokenButTheFirstIsPredictedOnce) {
  for (std::size_t tokens = 2; tokens < 40; ++tokens) {
    for (std::size_t context = 1; context < 12; ++context) {
      for (std::size_t stride = 1; stride <= context; ++stride) {
        std::vector<int> predicted(tokens);
        std::size_t longest = context;
        for (const TextWindow& window : CutTextWindows(tokens, context, stride)) {
          EXPECT_LE(window.inputs, longest);
          longest = window.inputs;
          EXPECT_LT(window.skip, window.inputs);
          for (std::size_t i = window.skip; i < window.inputs; ++i) {
            ++predicted.at(window.start + i + 1);
          }
        }
        EXPECT_EQ(predicted[0], 0);
        for (std::size_t i = 1; i < tokens; ++i) {
          EXPECT_EQ(predicted[i], 1) << tokens << " " << context << " " << stride << " " << i;
        }
      }
    }
  }
}

TEST(TextWindowsTest, WithoutOverlapTheyFollowEachOther) {
  EXPECT_EQ(CutTextWindows(10, 4, 4), (std::vector<TextWindow>{{0, 4, 0}, {4, 4, 0}, {8, 1, 0}}));
  EXPECT_EQ(CutTextWindows(9, 4, 2), (std::vector<TextWindow>{{0, 4, 0}, {2, 4, 2}, {4, 4, 2}}));
}

}  // namespace
}  // namespace kvasir::eval
