#include "cli/train_shape.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvasir::cli {
namespace {

std::string Refusal(const TrainShape& shape) {
  const auto config = MakeModelConfig(shape, 100);
  return config ? "" : config.error().message;
}

TEST(TrainShape, MakesBothArchitectures) {
  TrainShape shape;
  shape.tied = true;
  const auto gpt2 = MakeModelConfig(shape, 100).value();
  ASSERT_NE(gpt2.gpt2(), nullptr);
  EXPECT_EQ(gpt2.feed_forward(), 512u);
  EXPECT_EQ(gpt2.vocab(), 100u);
  EXPECT_TRUE(gpt2.Check().has_value());
  shape.arch = "llama";
  shape.kv_heads = 2;
  shape.rope_base = 500;
  const auto made = MakeModelConfig(shape, 100).value();
  ASSERT_NE(made.llama(), nullptr);
  EXPECT_EQ(made.llama()->kv_heads, 2u);
  EXPECT_EQ(made.llama()->head_dim, 32u);
  EXPECT_EQ(made.llama()->rope.dimensions, 32u);
  EXPECT_EQ(made.llama()->rope.base, 500.0f);
  EXPECT_EQ(made.feed_forward(), 352u);  // 8/3 · 128 is 341.3.
  EXPECT_TRUE(made.tied_head());
  EXPECT_TRUE(made.Check().has_value());
}

TEST(TrainShape, WindowsFollowTheirPattern) {
  TrainShape shape;
  shape.arch = "llama";
  shape.layers = 5;
  const auto windows = [&](const char* text) {
    shape.window = text;
    return MakeModelConfig(shape, 100).value().llama()->windows;
  };
  using Windows = std::vector<std::uint64_t>;
  EXPECT_EQ(windows("64"), (Windows{64, 64, 64, 64, 64}));
  EXPECT_EQ(windows("64,wwf"), (Windows{64, 64, 0, 64, 64}));
  EXPECT_EQ(windows("7,f"), (Windows{0, 0, 0, 0, 0}));
  for (const char* bad : {"0", "x", "64,", "64,wx", "64,wwf,w", ",w", "-1"}) {
    shape.window = bad;
    EXPECT_NE(Refusal(shape).find("--window"), std::string::npos) << bad;
  }
}

TEST(TrainShape, RefusesByTheFlagsName) {
  TrainShape shape;
  shape.heads = 3;
  EXPECT_EQ(Refusal(shape), "--dim 128 is not a multiple of --heads 3");
  shape.heads = 128;
  shape.arch = "llama";
  EXPECT_NE(Refusal(shape).find("makes 1 channels a head"), std::string::npos);
  shape.heads = 4;
  shape.kv_heads = 3;
  EXPECT_EQ(Refusal(shape), "--heads 4 is not a multiple of --kv-heads 3");
  shape = {};
  shape.kv_heads = 4;  // What it has anyway.
  EXPECT_EQ(Refusal(shape), "");
  shape.kv_heads = 2;
  EXPECT_NE(Refusal(shape).find("--kv-heads 2 with --arch gpt2"), std::string::npos);
  shape = {};
  shape.rope_base = 100;
  EXPECT_NE(Refusal(shape).find("--rope-base 100 with --arch gpt2"), std::string::npos);
  shape = {};
  shape.window = "9";
  EXPECT_NE(Refusal(shape).find("--window 9 with --arch gpt2"), std::string::npos);
  shape = {};
  shape.heads = 1;
  shape.dim = 1024;
  EXPECT_NE(Refusal(shape).find("allowed are 1 to 512"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::cli
