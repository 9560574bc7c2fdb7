#include "model/hf_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/model_test_util.h"

namespace kvasir::model {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(HfTensors, ConvolutionsAreTransposed) {
  const HfTensor tensor = {{"m", {3, 2}}, "c_attn.weight", HfOrder::kTransposed};
  // [inputs 2][outputs 3] to [outputs 3][inputs 2].
  EXPECT_EQ(Reordered(tensor, HfDirection::kToGguf, 1, 0, Bytes({1, 2, 3, 4, 5, 6})),
            Bytes({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Reordered(tensor, HfDirection::kFromGguf, 1, 0, Bytes({1, 4, 2, 5, 3, 6})),
            Bytes({1, 2, 3, 4, 5, 6}));
}

TEST(HfTensors, HalvesBecomeNeighbours) {
  const HfTensor tensor = {{"m", {8, 1}}, "q_proj.weight", HfOrder::kHalves};
  // Two heads of four channels, of which 0 turns with 2 and 1 with 3.
  const auto halves = Bytes({0, 1, 2, 3, 4, 5, 6, 7});
  const auto neighbours = Bytes({0, 2, 1, 3, 4, 6, 5, 7});
  EXPECT_EQ(Reordered(tensor, HfDirection::kToGguf, 1, 4, halves), neighbours);
  EXPECT_EQ(Reordered(tensor, HfDirection::kFromGguf, 1, 4, neighbours), halves);
}

TEST(HfTensors, BothWaysAreEachOthersInverse) {
  for (const HfOrder order : {HfOrder::kTransposed, HfOrder::kHalves}) {
    for (const std::size_t width : {2u, 4u}) {
      const HfTensor tensor = {{"m", {30, 7}}, "x", order};
      std::vector<std::byte> bytes(30 * 7 * width);
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
      const auto there = Reordered(tensor, HfDirection::kToGguf, width, 10, bytes);
      EXPECT_NE(there, bytes);
      EXPECT_EQ(Reordered(tensor, HfDirection::kFromGguf, width, 10, there), bytes);
    }
  }
}

TEST(HfTensors, NamesAreThoseOfTransformers) {
  const auto names = [](const HfModelConfig& config) {
    std::vector<std::string> found;
    for (const HfTensor& tensor : HfTensors(config)) found.push_back(tensor.name);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(std::adjacent_find(found.begin(), found.end()), found.end());
    return found;
  };
  const auto gpt2 = names(TestConfig());
  EXPECT_TRUE(std::binary_search(gpt2.begin(), gpt2.end(), "h.1.mlp.c_proj.bias"));
  EXPECT_TRUE(std::binary_search(gpt2.begin(), gpt2.end(), "lm_head.weight"));
  LlamaConfig config = TestLlamaConfig();
  config.tied_head = true;
  EXPECT_EQ(names(config).size(), 2 + 2 * 9u);
  config.family = LlamaFamily::kQwen2;
  config.qkv_bias = true;
  EXPECT_EQ(names(config).size(), 2 + 2 * 12u);
  for (const HfTensor& tensor : HfTensors(config)) EXPECT_EQ(tensor.order, HfOrder::kSame);
  EXPECT_EQ(HfPrefix(config), "model.");
  EXPECT_EQ(HfPrefix(TestConfig()), "transformer.");
}

}  // namespace
}  // namespace kvasir::model
