#include "eval/random_llama.h"

#include <gtest/gtest.h>

#include <functional>

#include "eval/trainer_forward.h"
#include "eval/verify.h"

namespace kvasir::eval {
namespace {

model::LlamaConfig Small(const std::function<void(model::LlamaConfig&)>& change) {
  model::LlamaConfig config;
  config.layers = 2;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = config.rope.dimensions = 8;
  config.embedding = 24;
  config.feed_forward = 56;
  config.context = 50;
  config.vocab = 37;
  change(config);
  return config;
}

TEST(RandomLlamaTest, RefusesShapesThatCannotBe) {
  EXPECT_TRUE(MakeRandomLlama(Small([](auto&) {}), 1));
  const auto uneven = MakeRandomLlama(Small([](auto& c) { c.kv_heads = 4; }), 1);
  EXPECT_EQ(uneven.error().code, base::ErrorCode::kUsage);
  const auto huge = MakeRandomLlama(Small([](auto& c) {
                                      c.embedding = 65536;
                                      c.vocab = 1 << 24;
                                    }),
                                    1);
  EXPECT_EQ(huge.error().code, base::ErrorCode::kUsage);
}

// The contract, the trainer's axis where there is one: grouped, multi-head and multi-query
// attention, and what each family adds.
TEST(RandomLlamaTest, VerifyFindsNothingWrongOnAnyAxis) {
  const model::LlamaConfig configs[] = {
      Small([](auto&) {}),
      Small([](model::LlamaConfig& c) {
        c.kv_heads = 6;
        c.windows = {7, 0};
      }),
      Small([](model::LlamaConfig& c) {
        c.kv_heads = 1;
        c.family = model::LlamaFamily::kQwen2;
        c.rope.pairing = model::PairingOf(c.family);
        c.qkv_bias = c.tied_head = true;
      }),
      Small([](model::LlamaConfig& c) {
        c.family = model::LlamaFamily::kQwen3;
        c.rope.pairing = model::PairingOf(c.family);
        c.head_norms = true;
        c.windows = {17, 17};
      }),
  };
  for (const model::LlamaConfig& config : configs) {
    const auto model = MakeRandomLlama(config, 7);
    ASSERT_TRUE(model) << model.error().message;
    const auto report = Verify(*model.value(), {.trials = 8, .seed = 3});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report.value().mismatches(), 0u) << report.value().first_mismatch;
    for (std::size_t i = 0; i < kVerifyAxes; ++i) {
      const auto axis = static_cast<VerifyAxis>(i);
      if (axis == VerifyAxis::kTrainer) continue;
      EXPECT_GT(report.value().axes[i].comparisons, 8u) << VerifyAxisName(axis);
    }
  }
}

TEST(RandomLlamaTest, TheTrainerKnowsTheKindsItTrains) {
  base::ThreadTeam team(1);
  const auto knows = [&](const auto& change) {
    const auto model = MakeRandomLlama(Small(change), 7);
    return MakeTrainerForward(*model.value(), team).value() != nullptr;
  };
  EXPECT_TRUE(knows([](auto&) {}));
  EXPECT_TRUE(knows([](auto& c) { c.windows = {7, 0}; }));
  EXPECT_FALSE(knows([](auto& c) {
    c.family = model::LlamaFamily::kQwen3;
    c.rope.pairing = model::PairingOf(c.family);
    c.head_norms = true;
  }));
}

}  // namespace
}  // namespace kvasir::eval
