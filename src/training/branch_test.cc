// One branch in isolation: its gradient is that of what it computes.
#include "training/branch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/random_test_values.h"
#include "training/attention_middle.h"
#include "training/mlp_middle.h"
#include "training/trained_policy.h"

namespace kvasir::training {
namespace {

ModelConfig Config() {
  model::LlamaConfig config;
  config.layers = 1;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = config.rope.dimensions = 4;
  config.embedding = 9;
  config.feed_forward = 11;
  config.context = 7;
  config.vocab = 5;
  config.rope.base = 30;
  return config;
}

// Both branches of a layer, over two sequences.
class BranchTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kRows = 14;

  BranchTest()
      : layout_(Config()),
        parameters_(kernels::RandomValues(3, layout_.size(), 1, 0.6f)),
        gradients_(layout_.size()),
        scratch_(plan_, kRows),
        shared_(plan_, 2, 2),
        branch_(plan_, GetParam() ? plan_.AttentionBranch(0) : plan_.MlpBranch(0), Middle(), 1,
                scratch_),
        kept_(branch_.plan(), plan_.embedding, kRows) {
    branch_.Bind({layout_, parameters_.data(), gradients_.data()});
  }

  std::unique_ptr<BranchMiddle> Middle() {
    if (GetParam()) return std::make_unique<AttentionMiddle>(plan_, 0, shared_);
    return std::make_unique<MlpMiddle>(plan_.mlp, plan_.feed_forward);
  }

  // Σ out · weights, and, if wanted, the gradient of that: dx, and the parameters'.
  double Run(const std::vector<float>& x, float dropout, std::vector<float>* dx) {
    std::vector<float> out(x.size());
    const std::vector<std::size_t> starts = {0, 7};
    const MicroBatch batch{{}, starts, 7, 0};
    const Disturbance setting{dropout, 11, 2};
    base::ThreadTeam team(2);
    team.Run([&](Member& member) {
      const Pass pass{member, batch, setting};
      branch_.Pack(member);
      member.Barrier();
      branch_.Forward(pass, x.data(), kept_, out.data());
      if (dx != nullptr) branch_.Backward(pass, x.data(), kept_, dx->data());
    });
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += double{out[i]} * weights_[i];
    return sum;
  }

  const NetworkPlan plan_ = PlanOf(Config(), TrainedPolicy(Config(), "").value());
  const ParameterLayout layout_;
  std::vector<float> parameters_, gradients_;
  BranchScratch scratch_;
  AttentionShared shared_;
  Branch branch_;
  BranchRows kept_;
  const std::vector<float> weights_ = kernels::RandomValues(3, kRows * 9, 2);
};
INSTANTIATE_TEST_SUITE_P(Kinds, BranchTest, testing::Bool(), [](const auto& param_info) {
  return param_info.param ? "attention" : "mlp";
});

// Central differences with a step of 2^-8: h² f‴ / 6 and the rounding of out, 2^-24 / h a term.
TEST_P(BranchTest, GradientsMatchFiniteDifferences) {
  constexpr float kStep = 0x1p-8f;
  for (const float dropout : {0.0f, 0.3f}) {
    std::vector<float> x = kernels::RandomValues(3, kRows * 9, 4), dx = weights_;
    std::fill(gradients_.begin(), gradients_.end(), 0.0f);
    Run(x, dropout, &dx);
    const auto slope = [&](float& number) {
      const float before = number;
      number = before + kStep;
      const double above = Run(x, dropout, nullptr);
      number = before - kStep;
      const double below = Run(x, dropout, nullptr);
      number = before;
      return (above - below) / (2 * kStep);
    };
    for (std::size_t i = 0; i < x.size(); i += 5) {
      EXPECT_NEAR(dx[i], slope(x[i]), 4e-3) << "x " << i << " dropout " << dropout;
    }
    std::size_t used = 0;
    for (std::size_t i = 0; i < parameters_.size(); i += 7) {
      EXPECT_NEAR(gradients_[i], slope(parameters_[i]), 4e-3) << i << " dropout " << dropout;
      used += gradients_[i] != 0;
    }
    EXPECT_GT(used, 20u);
  }
}

// Gradients are added to what is there: a chain that the batch before began.
TEST_P(BranchTest, GradientsGoOn) {
  const std::vector<float> x = kernels::RandomValues(3, kRows * 9, 4);
  std::vector<float> dx = weights_;
  Run(x, 0, &dx);
  const std::vector<float> once = gradients_;
  dx = weights_;
  Run(x, 0, &dx);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < once.size(); ++i) {
    difference += std::abs(gradients_[i] - 2 * double{once[i]});
    size += std::abs(once[i]);
  }
  EXPECT_LT(difference, 1e-5 * size);
  EXPECT_GT(size, 1);
}

}  // namespace
}  // namespace kvasir::training
