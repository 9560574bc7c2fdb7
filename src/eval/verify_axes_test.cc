#include "eval/verify_axes.h"

#include <gtest/gtest.h>

#include "eval/eval_test_models.h"

namespace kvasir::eval {
namespace {

struct AxisCase {
  VerifyAxis axis;
  base::Result<void> (*run)(const AxisTrial&);
};

constexpr AxisCase kCases[] = {
    {VerifyAxis::kKvCache, RunKvCacheAxis}, {VerifyAxis::kPrefillChunk, RunPrefillChunkAxis},
    {VerifyAxis::kBatch, RunBatchAxis},     {VerifyAxis::kThreads, RunThreadsAxis},
    {VerifyAxis::kBlock, RunBlockAxis},     {VerifyAxis::kPlacement, RunPlacementAxis},
    {VerifyAxis::kFork, RunForkAxis},       {VerifyAxis::kSimd, RunSimdAxis},
    {VerifyAxis::kMixed, RunMixedAxis},     {VerifyAxis::kPrefix, RunPrefixAxis},
    {VerifyAxis::kRestore, RunRestoreAxis},
};

class VerifyAxesTest : public testing::Test {
 protected:
  void SetUp() override {
    RandomStream random(11);
    world_ = DrawWorld(model_->shape(), random, /*full=*/true);
    for (PlainSequence& sequence : world_) ASSERT_TRUE(sequence.RunPlainly(*model_));
  }
  VerifyReport Run(const model::Model& model, const AxisCase& axis, std::uint64_t seed) {
    VerifyReport report;
    RowComparer comparer(report, model.shape().vocab);
    RandomStream random(seed);
    const auto done = axis.run({model, world_, teams_, comparer, random, std::nullopt});
    EXPECT_TRUE(done) << done.error().message;
    return report;
  }

  const std::unique_ptr<model::Gpt2Model> model_ = TinyGpt2(29, 40);
  std::vector<PlainSequence> world_;
  TeamSet teams_;
};

TEST_F(VerifyAxesTest, EachCountsOnItsOwnAxisAlone) {
  for (const AxisCase& axis : kCases) {
    const VerifyReport report = Run(*model_, axis, 1);
    EXPECT_GT(report.of(axis.axis).comparisons, 0u) << VerifyAxisName(axis.axis);
    EXPECT_EQ(report.comparisons(), report.of(axis.axis).comparisons);
    EXPECT_EQ(report.mismatches(), 0u) << report.first_mismatch;
  }
}

TEST_F(VerifyAxesTest, WholeSequencesAreCompared) {
  // Without rows left out these axes compare each position of the world at least once.
  std::size_t positions = 0;
  for (const PlainSequence& sequence : world_) positions += sequence.tokens.size();
  EXPECT_EQ(Run(*model_, kCases[5], 1).comparisons(), positions);  // placement
  std::uint64_t last_rows = 0;  // A batch may leave rows out, but not all.
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    last_rows += Run(*model_, kCases[2], seed).comparisons();
  }
  EXPECT_GT(last_rows, 10 * positions / 2);
}

TEST_F(VerifyAxesTest, EveryWrongRowIsAMismatch) {
  const MeddledModel wrong(*model_, [](const MeddledModel::Step& step) {
    for (std::size_t i = 0; i < step.logits.size(); i += 29) step.logits[i] += 1.0f;
  });
  for (const AxisCase& axis : kCases) {
    const VerifyReport report = Run(wrong, axis, 2);
    EXPECT_EQ(report.mismatches(), report.comparisons()) << VerifyAxisName(axis.axis);
    EXPECT_GT(report.mismatches(), 0u);
  }
}

TEST_F(VerifyAxesTest, RefusalsOfTheModelArePassedOn) {
  class Refusing : public model::Model {
   public:
    explicit Refusing(const model::ModelShape& shape) : shape_(shape) {}
    const model::ModelShape& shape() const override { return shape_; }
    base::Result<void> Forward(std::span<const model::BatchItem>, model::Scratch&,
                               base::ThreadTeam&, std::span<float>) const override {
      return base::MakeError(base::ErrorCode::kExhausted, "no");
    }

   private:
    model::ModelShape shape_;
  };
  const Refusing refusing(model_->shape());
  for (const AxisCase& axis : kCases) {
    VerifyReport report;
    RowComparer comparer(report, 29);
    RandomStream random(3);
    const auto done = axis.run({refusing, world_, teams_, comparer, random, std::nullopt});
    ASSERT_FALSE(done) << VerifyAxisName(axis.axis);
    EXPECT_EQ(done.error().code, base::ErrorCode::kExhausted);
  }
}

}  // namespace
}  // namespace kvasir::eval
