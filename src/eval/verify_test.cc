#include "eval/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "eval/eval_test_models.h"
#include "eval/sequence_logits.h"
#include "eval/trainer_forward.h"
#include "eval/verify_runner.h"
#include "eval/verify_world.h"
#include "kernels/targets.h"

namespace kvasir::eval {
namespace {

using Step = MeddledModel::Step;

constexpr std::uint64_t kVocab = 37;

void FlipOneBit(float& x) { x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ 1u); }

VerifyReport MustVerify(const model::Model& model, const VerifyOptions& options) {
  auto report = Verify(model, options);
  EXPECT_TRUE(report) << report.error().message;
  return report ? std::move(report.value()) : VerifyReport();
}

// The axes with a mismatch, for a model that flips the last bit of one logit where `wrong` says.
std::set<std::string> AxesThatSee(const std::function<bool(const Step&)>& wrong) {
  const auto inner = TinyGpt2(kVocab, 50);
  const MeddledModel model(*inner, [&](const Step& step) {
    if (!step.logits.empty() && wrong(step)) FlipOneBit(step.logits[step.logits.size() / 2]);
  });
  const VerifyReport report = MustVerify(model, {.trials = 6, .seed = 5});
  std::set<std::string> seen;
  for (std::size_t i = 0; i < kVerifyAxes; ++i) {
    EXPECT_LE(report.axes[i].mismatches, report.axes[i].comparisons);
    // The axis of policies arranges the work in any of the other ways.
    if (report.axes[i].mismatches > 0 && static_cast<VerifyAxis>(i) != VerifyAxis::kPolicy) {
      seen.emplace(VerifyAxisName(static_cast<VerifyAxis>(i)));
    }
  }
  EXPECT_EQ(seen.empty(), report.first_mismatch.empty());
  EXPECT_EQ(seen.empty(), report.mismatches() == 0);
  return seen;
}

TEST(VerifyTest, FindsNothingWrongOnAnyAxis) {
  const auto model = TinyGpt2(kVocab, 50);
  for (const std::uint64_t seed : {1u, 2u}) {
    std::uint64_t trials_told = 0;
    VerifyOptions options = {.trials = 20, .seed = seed};
    options.after_trial = [&](std::uint64_t done) { EXPECT_EQ(done, ++trials_told); };
    const VerifyReport report = MustVerify(*model, options);
    EXPECT_EQ(trials_told, 20u);
    EXPECT_EQ(report.trials, 20u);
    EXPECT_EQ(report.mismatches(), 0u) << "seed " << seed << ": " << report.first_mismatch;
    EXPECT_FALSE(report.trainer_checked);
    for (std::size_t i = 0; i < kVerifyAxes; ++i) {
      const auto axis = static_cast<VerifyAxis>(i);
      if (axis == VerifyAxis::kTrainer) continue;
      EXPECT_GT(report.axes[i].comparisons, 20u) << VerifyAxisName(axis);
    }
  }
}

// R6 keeps the promise as R1 does. The trainer has f32 weights only, and says so.
TEST(VerifyTest, RoundedWeightsKeepTheContract) {
  base::ThreadTeam team(1);
  for (const tensor::DType dtype : {tensor::DType::kQ8_0, tensor::DType::kQ4_0}) {
    const auto model = MakeRandomGpt2({.layers = 2,
                                       .heads = 2,
                                       .embedding = 32,
                                       .feed_forward = 64,
                                       .context = 40,
                                       .vocab = kVocab},
                                      /*seed=*/7, dtype)
                           .value();
    EXPECT_TRUE(model->shape().rounded());
    const VerifyReport report = MustVerify(*model, {.trials = 6, .seed = 3});
    EXPECT_EQ(report.mismatches(), 0u) << report.first_mismatch;
    EXPECT_GT(report.of(VerifyAxis::kSimd).comparisons, 0u);
    EXPECT_GT(report.of(VerifyAxis::kBatch).comparisons, 0u);
    EXPECT_FALSE(static_cast<bool>(MakeTrainerForward(*model, team).value()));
  }
}

TEST(VerifyTest, OneTrialReachesEveryAxisEvenInAContextOfOne) {
  for (const std::uint64_t context : {1u, 2u, 16u, 17u}) {
    const auto model = TinyGpt2(3, context);
    const VerifyReport report = MustVerify(*model, {.trials = 3, .seed = context});
    EXPECT_EQ(report.mismatches(), 0u) << report.first_mismatch;
    EXPECT_GT(report.of(VerifyAxis::kKvCache).comparisons, 0u);
    EXPECT_GT(report.of(VerifyAxis::kBatch).comparisons, 0u);
    EXPECT_GT(report.of(VerifyAxis::kSimd).comparisons, 0u);
  }
}

TEST(VerifyTest, IsFixedByItsSeed) {
  const auto model = TinyGpt2(kVocab, 50);
  const VerifyReport a = MustVerify(*model, {.trials = 3, .seed = 9});
  const VerifyReport b = MustVerify(*model, {.trials = 3, .seed = 9});
  const VerifyReport c = MustVerify(*model, {.trials = 3, .seed = 10});
  for (std::size_t i = 0; i < kVerifyAxes; ++i) {
    EXPECT_EQ(a.axes[i].comparisons, b.axes[i].comparisons);
  }
  EXPECT_NE(a.comparisons(), c.comparisons());
}

// Canaries: one bit wrong in one logit, under one condition each.

TEST(VerifyCanaryTest, WrongInBatches) {
  EXPECT_EQ(AxesThatSee([](const Step& step) { return step.items.size() > 1; }),
            (std::set<std::string>{"batch", "mixed"}));
}

TEST(VerifyCanaryTest, WrongInWideBatchesOnly) {
  const auto inner = TinyGpt2(kVocab, 50);
  const MeddledModel model(*inner, [](const Step& step) {
    if (step.items.size() >= 40 && !step.logits.empty()) FlipOneBit(step.logits[0]);
  });
  const VerifyReport report = MustVerify(model, {.trials = 40, .seed = 1});
  EXPECT_GT(report.of(VerifyAxis::kBatch).mismatches, 0u);
}

TEST(VerifyCanaryTest, WrongOnSeveralThreads) {
  EXPECT_EQ(AxesThatSee([](const Step& step) { return step.team.size() > 1; }),
            (std::set<std::string>{"mixed", "threads"}));
}

TEST(VerifyCanaryTest, WrongInOtherBlockSizes) {
  EXPECT_EQ(AxesThatSee([](const Step& step) {
              return step.items[0].sequence->geometry().block_tokens() != 16;
            }),
            (std::set<std::string>{"block", "mixed"}));
}

TEST(VerifyCanaryTest, WrongWhereBlocksAreShared) {
  const auto seen =
      AxesThatSee([](const Step& step) { return step.items[0].sequence->shared_bytes() > 0; });
  EXPECT_TRUE(seen.contains("fork"));
  EXPECT_FALSE(seen.contains("batch"));
  EXPECT_FALSE(seen.contains("placement"));
}

TEST(VerifyCanaryTest, WrongWhereABlockLiesAtAnOddIndex) {
  // Plain runs of up to 16 tokens hold block 0 alone; longer ones hold both kinds themselves.
  EXPECT_TRUE(AxesThatSee([](const Step& step) {
                return step.items[0].sequence->length() <= 16 &&
                       step.items[0].sequence->blocks()[0].index() % 2 == 1;
              }).contains("placement"));
}

TEST(VerifyCanaryTest, WrongAfterAPrefixThatWasFound) {
  // A step that begins inside a sequence none of whose positions this model has computed.
  const auto inner = TinyGpt2(kVocab, 50);
  const kvcache::CachedSequence* last = nullptr;
  std::size_t computed = 0;
  const MeddledModel model(*inner, [&](const Step& step) {
    const kvcache::CachedSequence* now = step.items[0].sequence;
    const bool found = step.lengths[0] > 0 && (now != last || step.lengths[0] != computed);
    if (found && step.items.size() == 1 && !step.logits.empty()) FlipOneBit(step.logits[0]);
    last = now;
    computed = now->length();
  });
  const VerifyReport report = MustVerify(model, {.trials = 6, .seed = 5});
  EXPECT_GT(report.of(VerifyAxis::kPrefix).mismatches, 0u);
  EXPECT_GT(report.of(VerifyAxis::kRestore).mismatches, 0u);
  EXPECT_EQ(report.of(VerifyAxis::kPrefillChunk).mismatches, 0u);
}

TEST(VerifyCanaryTest, WrongInLongSteps) {
  const auto seen = AxesThatSee([](const Step& step) { return step.items[0].tokens.size() > 1; });
  EXPECT_TRUE(seen.contains("prefill_chunk"));
  EXPECT_TRUE(seen.contains("kv_cache"));
}

TEST(VerifyCanaryTest, WrongAfterRecomputingEverything) {
  EXPECT_TRUE(AxesThatSee([](const Step& step) {
                return step.lengths[0] == 0 && step.items[0].tokens.size() > 5 &&
                       step.items[0].logit_rows == 1;
              }).contains("kv_cache"));
}

TEST(VerifyCanaryTest, WrongOnAnotherInstructionSet) {
  const auto targets = kernels::AvailableTargets();
  if (targets.size() < 2) GTEST_SKIP() << "this machine has one instruction set";
  const std::string best = targets[0].name;
  EXPECT_EQ(AxesThatSee([&](const Step&) { return kernels::CurrentTargetName() != best; }),
            (std::set<std::string>{"mixed", "simd"}));
  EXPECT_EQ(kernels::CurrentTargetName(), best);
}

TEST(VerifyTest, TheTrainersPassHasTheSamplersBits) {
  base::ThreadTeam team(2);
  for (const bool tied : {false, true}) {
    const auto model = MakeRandomGpt2({.layers = 2,
                                       .heads = 3,
                                       .embedding = 36,
                                       .feed_forward = 80,
                                       .context = 70,
                                       .vocab = kVocab,
                                       .tied_head = tied},
                                      /*seed=*/3);
    ASSERT_TRUE(model);
    const auto trainer = MakeTrainerForward(*model.value(), team);
    ASSERT_TRUE(trainer) << trainer.error().message;
    const VerifyReport report =
        MustVerify(*model.value(), {.trials = 8, .trainer = trainer.value()});
    EXPECT_TRUE(report.trainer_checked);
    EXPECT_GT(report.of(VerifyAxis::kTrainer).comparisons, 20u);
    EXPECT_EQ(report.mismatches(), 0u) << report.first_mismatch;
  }
}

TEST(VerifyCanaryTest, WrongInTheTrainersPass) {
  const auto model = TinyGpt2(kVocab, 50);
  base::ThreadTeam team(1);
  const auto right = MakeTrainerForward(*model, team);
  ASSERT_TRUE(right) << right.error().message;
  const SequenceForward wrong = [&](std::span<const base::TokenId> tokens,
                                    std::span<float> logits) -> base::Result<void> {
    KV_TRY(right.value()(tokens, logits));
    FlipOneBit(logits.back());
    return base::Success();
  };
  const VerifyReport report = MustVerify(*model, {.trials = 3, .trainer = wrong});
  EXPECT_EQ(report.of(VerifyAxis::kTrainer).mismatches, 3u);
  EXPECT_EQ(report.mismatches(), 3u);
}

TEST(VerifyTest, TheTrainerKnowsNoOtherModels) {
  const auto inner = TinyGpt2(kVocab, 50);
  const MeddledModel other(*inner, [](const Step&) {});
  base::ThreadTeam team(1);
  const auto trainer = MakeTrainerForward(other, team);
  ASSERT_TRUE(trainer);
  EXPECT_EQ(trainer.value(), nullptr);
}

TEST(VerifyTest, SaysWhereTheFirstMismatchIs) {
  const auto inner = TinyGpt2(kVocab, 50);
  const MeddledModel model(*inner, [](const Step& step) {
    if (step.team.size() > 1 && !step.logits.empty()) FlipOneBit(step.logits[7]);
  });
  const VerifyReport report = MustVerify(model, {.trials = 1, .seed = 1});
  EXPECT_THAT(report.first_mismatch, testing::StartsWith("axis threads, trial 1, a sequence of "));
  EXPECT_THAT(report.first_mismatch, testing::HasSubstr("the logit of token 7 is "));
}

TEST(VerifyTest, NonFiniteLogitsAreAnErrorOutsideTheContract) {  // Case C11
  const auto inner = TinyGpt2(kVocab, 50);
  const MeddledModel model(*inner, [](const Step& step) {
    if (step.lengths[0] == 2) step.logits[1] = std::numeric_limits<float>::quiet_NaN();
  });
  const auto report = Verify(model, {.trials = 1});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, base::ErrorCode::kNumeric);
  EXPECT_THAT(report.error().message, testing::HasSubstr("position 2"));
}

TEST(VerifyTest, RefusesZeroTrials) {
  const auto model = TinyGpt2(kVocab);
  const auto report = Verify(*model, {.trials = 0});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, base::ErrorCode::kUsage);
}

TEST(VerifyWorldTest, DrawsWhatTheAxesNeed) {
  model::ModelShape shape;
  shape.context = 50;
  shape.vocab = kVocab;
  std::size_t widest = 0;
  std::size_t longest = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed);
    const auto world = DrawWorld(shape, random, /*full=*/seed % 2 == 0);
    ASSERT_GE(world.size(), 2u);
    ASSERT_LE(world.size(), kMaxVerifySequences);
    widest = std::max(widest, world.size());
    if (seed % 2 == 0) {
      EXPECT_EQ(world.front().tokens.size(), 50u);
    }
    EXPECT_EQ(world.front().shared_prefix, 0u);
    EXPECT_GT(world[1].shared_prefix, 0u);
    for (const PlainSequence& sequence : world) {
      longest = std::max(longest, sequence.tokens.size());
      ASSERT_GE(sequence.tokens.size(), 1u);
      ASSERT_LE(sequence.tokens.size(), 50u);
      ASSERT_LE(sequence.shared_prefix, sequence.tokens.size());
      EXPECT_TRUE(std::equal(sequence.tokens.begin(),
                             sequence.tokens.begin() + sequence.shared_prefix,
                             world.front().tokens.begin()));
    }
  }
  EXPECT_EQ(widest, kMaxVerifySequences);
  EXPECT_EQ(longest, 50u);
}

TEST(VerifyWorldTest, LargeVocabulariesKeepSomeRowsAndTheLast) {
  const auto model = TinyGpt2(kVocab, 50);
  PlainSequence sequence;
  sequence.tokens.assign(50, 1);
  RandomStream random(3);
  sequence.ChooseRows(5, random);
  ASSERT_TRUE(sequence.RunPlainly(*model));
  base::ThreadTeam team(1);
  const auto all = SequenceLogits(*model, sequence.tokens, {}, team);
  ASSERT_TRUE(all);
  std::size_t kept = 0;
  for (std::size_t t = 0; t < 50; ++t) {
    const auto row = sequence.Row(t, kVocab);
    if (row.empty()) continue;
    ++kept;
    EXPECT_TRUE(std::equal(row.begin(), row.end(), all.value().begin() + t * kVocab));
  }
  EXPECT_FALSE(sequence.Row(49, kVocab).empty());
  EXPECT_GT(kept, 3u);
  EXPECT_LT(kept, 20u);
}

}  // namespace
}  // namespace kvasir::eval
