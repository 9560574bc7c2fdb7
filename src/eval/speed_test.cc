// Benchmarks are tested for what they check and count, never for time.
#include "eval/speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "eval/eval_test_models.h"
#include "eval/generation_speed.h"
#include "eval/model_work.h"
#include "eval/random_deepseek.h"
#include "eval/random_llama.h"

namespace kvasir::eval {
namespace {

void FlipOneBit(float& x) { x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ 1u); }

TEST(SpeedTest, MedianIsTheMiddle) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({4, 1, 9, 2}), 3);
}

TEST(SpeedTest, RoofsAreMeasuredOnEveryTeam) {
  for (const std::size_t threads : {1u, 3u}) {
    base::ThreadTeam team(threads);
    EXPECT_GT(MeasureReadRoof(100'000, 2, team), 0.0);
    EXPECT_GT(MeasureFmaRoof(2, team), 0.0);
  }
}

TEST(ModelWorkTest, CountsWhatTheLessonsModelMoves) {
  const auto made = MakeRandomGpt2({.vocab = 6915}, /*seed=*/1);
  ASSERT_TRUE(made);
  const model::ModelShape& shape = made.value()->shape();
  // All 2,579,968 parameters but the two tables, plus a row of each.
  EXPECT_EQ(WeightBytesPerStep(shape), 4u * (2579968 - 6915 * 128 - 128 * 128 + 2 * 128));
  EXPECT_EQ(KvBytesAt(shape, 0), 4096u);
  EXPECT_EQ(KvBytesAt(shape, 127), 128u * 4096);
  // One token: every matrix element once, and attention to itself.
  const double matrices = 4 * (12 * 128 * 128) + 6915 * 128;
  EXPECT_EQ(PrefillFlops(shape, 0, 1), 2 * (matrices + 4 * 2 * 128));
  // Two tokens after one: positions 1 and 2 see 2 and 3; the last layer needs the second alone.
  EXPECT_EQ(PrefillFlops(shape, 1, 2), 2 * (3 * (2 * 12 * 128 * 128 + 5 * 2 * 128) +
                                            (2 * 3 + 9) * 128 * 128 + 3 * 2 * 128 + 6915 * 128));
}

TEST(ModelWorkTest, ALatentCacheMovesItsEntries) {
  model::ModelShape shape;
  shape.layers = 3;
  shape.heads = 16;
  shape.latent_dim = 512;
  shape.rope_dim = 64;
  EXPECT_EQ(KvBytesAt(shape, 9), 10u * 3 * 576 * 4);
}

// By the tensors that a step multiplies with.
TEST(ModelWorkTest, CountsTheMatricesOfEveryArchitecture) {
  const auto sum = [](const auto& specs, bool (*counted)(const std::string&)) {
    std::uint64_t numbers = 0;
    for (const model::TensorSpec& spec : specs) {
      if (counted(spec.name)) numbers += spec.shape.ElementCount().value();
    }
    return numbers;
  };
  const auto in_block = [](const std::string& name) {
    return name.starts_with("blk.0.") && name.ends_with(".weight") &&
           !name.ends_with("norm.weight");
  };
  model::LlamaConfig llama;
  llama.vocab = 99;
  llama.kv_heads = 2;
  model::DeepseekConfig deepseek;
  deepseek.vocab = 99;
  deepseek.query_rank = 40;
  for (const bool tied : {false, true}) {
    llama.tied_head = deepseek.tied_head = tied;
    const auto a = MakeRandomLlama(llama, 1);
    const auto b = MakeRandomDeepseek(deepseek, 1);
    ASSERT_TRUE(a && b);
    for (const model::Model* model : {static_cast<const model::Model*>(a.value().get()),
                                      static_cast<const model::Model*>(b.value().get())}) {
      const model::ModelShape& shape = model->shape();
      const std::uint64_t table = shape.vocab * shape.embedding;
      EXPECT_EQ(shape.work.weights, shape.parameters - (tied ? 0 : table) + shape.embedding);
      // One token that sees itself.
      const double layer = static_cast<double>(shape.work.before_attention +
                                               shape.work.after_attention + shape.work.per_visible);
      EXPECT_EQ(PrefillFlops(shape, 0, 1),
                2 * (static_cast<double>(shape.layers) * layer + static_cast<double>(table)));
    }
    const model::StepWork& llama_work = a.value()->shape().work;
    EXPECT_EQ(llama_work.before_attention + llama_work.after_attention,
              sum(model::LlamaTensors(llama), in_block));
    const model::StepWork& deepseek_work = b.value()->shape().work;
    EXPECT_EQ(deepseek_work.before_attention + deepseek_work.after_attention,
              sum(model::DeepseekTensors(deepseek), in_block));
  }
}

TEST(GenerationSpeedTest, MeasuresWhatIsRight) {
  const auto model = TinyGpt2(65);
  base::ThreadTeam team(2);
  const auto decode = MeasureDecode(*model, {.tokens = 40, .repetitions = 2}, team);
  ASSERT_TRUE(decode) << decode.error().message;
  EXPECT_GT(decode.value().us_per_token_forward, 0.0);
  EXPECT_GT(decode.value().gb_per_s, 0.0);
  EXPECT_EQ(decode.value().kv_bytes, 20.5 * static_cast<double>(KvBytesAt(model->shape(), 0)));
  const auto prefill = MeasurePrefill(*model, {.tokens = 40, .repetitions = 2}, team);
  ASSERT_TRUE(prefill) << prefill.error().message;
  EXPECT_GT(prefill.value().tokens_per_s, 0.0);
  const auto batch = MeasureBatch(*model, 5, {.tokens = 20, .repetitions = 2}, team);
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_GT(batch.value().tokens_per_s, 0.0);
  const auto gain = MeasureCacheGain(*model, {.tokens = 30, .repetitions = 2}, team);
  ASSERT_TRUE(gain) << gain.error().message;
  EXPECT_EQ(gain.value().positions_on, 30u);
  EXPECT_EQ(gain.value().positions_off, 465u);
  EXPECT_GT(gain.value().ratio, 0.0);
}

TEST(GenerationSpeedTest, TimesNothingThatIsWrong) {
  const auto inner = TinyGpt2(65);
  // Wrong in steps of several tokens, and in steps of several sequences.
  const MeddledModel model(*inner, [](const MeddledModel::Step& step) {
    if (step.items.size() > 1 || step.items[0].tokens.size() > 1) FlipOneBit(step.logits.back());
  });
  base::ThreadTeam team(1);
  const SpeedOptions options = {.tokens = 10, .repetitions = 1};
  for (const auto& error :
       {MeasureDecode(model, options, team).error(), MeasurePrefill(model, options, team).error(),
        MeasureCacheGain(model, options, team).error()}) {
    EXPECT_EQ(error.code, base::ErrorCode::kNumeric);
    EXPECT_THAT(error.message, testing::AnyOf(testing::HasSubstr("not timed")));
  }
  const MeddledModel wide(*inner, [](const MeddledModel::Step& step) {
    if (step.items.size() > 1) FlipOneBit(step.logits.back());
  });
  const auto batch = MeasureBatch(wide, 3, options, team);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().message, "sequence 2 of 3 has other logits than alone: not timed");
}

TEST(GenerationSpeedTest, RefusesWhatDoesNotFitTheContext) {
  const auto model = TinyGpt2(65);
  base::ThreadTeam team(1);
  for (const std::uint64_t tokens : {std::uint64_t{0}, std::uint64_t{41}, ~std::uint64_t{0}}) {
    EXPECT_EQ(MeasureDecode(*model, {.tokens = tokens}, team).error().code,
              base::ErrorCode::kUsage);
    EXPECT_EQ(MeasurePrefill(*model, {.tokens = tokens}, team).error().code,
              base::ErrorCode::kUsage);
    EXPECT_EQ(MeasureBatch(*model, 2, {.tokens = tokens}, team).error().code,
              base::ErrorCode::kUsage);
    EXPECT_EQ(MeasureCacheGain(*model, {.tokens = tokens}, team).error().code,
              base::ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace kvasir::eval
