#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "eval/eval_test_models.h"
#include "eval/random_llama.h"
#include "eval/verify_axes.h"
#include "eval/verify_policy.h"

namespace kvasir::eval {
namespace {

std::unique_ptr<model::LlamaModel> TinyLlama() {
  model::LlamaConfig config;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = config.rope.dimensions = 8;
  config.embedding = 24;
  config.feed_forward = 40;
  config.context = 60;
  config.vocab = 29;
  return std::move(MakeRandomLlama(config, 3).value());
}

VerifyReport RunOnce(const model::Model& plain, const model::Model& model, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<PlainSequence> world = DrawWorld(plain.shape(), random, /*full=*/true);
  for (PlainSequence& sequence : world) EXPECT_TRUE(sequence.RunPlainly(plain));
  VerifyReport report;
  RowComparer comparer(report, plain.shape().vocab);
  TeamSet teams;
  const auto done = RunPolicyAxis({model, world, teams, comparer, random, std::nullopt});
  EXPECT_TRUE(done) << done.error().message;
  return report;
}

TEST(VerifyPolicyAxisTest, EveryPolicyKeepsThePromiseAndCountsHere) {
  const auto gpt2 = TinyGpt2(29);
  const auto llama = TinyLlama();
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    for (const model::Model* model : {static_cast<const model::Model*>(gpt2.get()),
                                      static_cast<const model::Model*>(llama.get())}) {
      const VerifyReport report = RunOnce(*model, *model, seed);
      EXPECT_GT(report.of(VerifyAxis::kPolicy).comparisons, 0u) << seed;
      EXPECT_EQ(report.comparisons(), report.of(VerifyAxis::kPolicy).comparisons);
      EXPECT_EQ(report.mismatches(), 0u) << seed << ": " << report.first_mismatch;
    }
  }
}

// A model whose answer depends on how many positions are new: no policy hides it.
TEST(VerifyPolicyAxisTest, SeesWhatDependsOnTheArrangement) {
  const auto inner = TinyGpt2(29);
  const MeddledModel model(*inner, [](const MeddledModel::Step& step) {
    if (step.items[0].tokens.size() > 1 && !step.logits.empty()) step.logits[0] += 1;
  });
  std::uint64_t mismatches = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    mismatches += RunOnce(*inner, model, seed).mismatches();
  EXPECT_GT(mismatches, 0u);
}

}  // namespace
}  // namespace kvasir::eval
