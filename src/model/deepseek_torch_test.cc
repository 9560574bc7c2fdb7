// The absorbed pass against PyTorch's plain one in float64, which expands every head's keys and
// values. The numbers are committed; tests/torch/make_mla_fixture.py wrote them.
#include <gtest/gtest.h>

#include <string>

#include "model/deepseek_model.h"
#include "model/torch_test_fixture.h"

namespace kvasir::model {
namespace {

struct Case {
  const char* label;
  std::uint64_t query_rank;
  float factor;
};

class DeepseekTorchTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    config_.layers = 2;
    config_.heads = 3;
    config_.embedding = 20;
    config_.feed_forward = 24;
    config_.context = 12;
    config_.vocab = 23;
    config_.query_rank = GetParam().query_rank;
    config_.latent_dim = 10;
    config_.nope_dim = 6;
    config_.value_dim = 5;
    config_.norm_eps = 1e-5f;
    config_.rope.dimensions = 4;
    config_.rope.base = 100;
    config_.rope.factor = GetParam().factor;
  }

  double LargestDifference(const DeepseekConfig& config) const {
    return fixture_.LargestDifference<DeepseekModel>(config);
  }

  // How many roundings lie one after the other on the longest way to a logit, times the sum of
  // absolute terms of its last sum: the reasoning of training/torch_fixture_test.cc. Attention's
  // longest way goes by the query: down, norm, up, absorbed, score, softmax, sum, expanded.
  double Bound() const {
    const DeepseekConfig& c = config_;
    const double norm = 16, turn = 4, silu = 5;
    const auto width = static_cast<double>(c.embedding);
    const auto positions = static_cast<double>(c.context);
    double query = width;
    if (c.query_rank != 0) query += norm + static_cast<double>(c.query_rank);
    const double attention = query + turn + static_cast<double>(c.nope_dim) +
                             static_cast<double>(c.entry_dim()) + 2 * positions + 4 +
                             static_cast<double>(c.latent_dim);
    const double layer = 2 * norm + attention + static_cast<double>(c.value_width()) + 1 + width +
                         silu + 1 + static_cast<double>(c.feed_forward) + 1;
    const double roundings = static_cast<double>(c.layers) * layer + norm + width;
    return roundings * kUnitRoundoff * fixture_.Get("magnitude", "logits").at(0);
  }

  DeepseekConfig config_;
  const TorchFixture fixture_{GetParam().label};
};
INSTANTIATE_TEST_SUITE_P(Models, DeepseekTorchTest,
                         testing::Values(Case{"mla", 0, 1.0f}, Case{"mla_query_rank", 8, 2.0f}),
                         [](const auto& param_info) { return param_info.param.label; });

TEST_P(DeepseekTorchTest, LogitsAreTorchs) {
  ASSERT_EQ(CheckConfig(config_).has_value(), true);
  const double largest = LargestDifference(config_);
  RecordProperty("share_of_bound", std::to_string(largest / Bound()));
  EXPECT_LE(largest, Bound());
  EXPECT_GT(largest, 0.0) << "compares nothing";
}

// That the bound is narrow enough to be worth having.
TEST_P(DeepseekTorchTest, AnotherEpsilonScalingOrBaseWouldBeSeen) {
  DeepseekConfig config = config_;
  config.norm_eps = 1.1e-5f;
  EXPECT_GT(LargestDifference(config), Bound());
  config = config_;
  config.rope.factor *= 1.01f;
  EXPECT_GT(LargestDifference(config), Bound());
  config = config_;
  config.rope.base = 101;
  EXPECT_GT(LargestDifference(config), Bound());
  config = config_;
  config.rope.pairing = kernels::RopePairing::kHalves;
  EXPECT_GT(LargestDifference(config), Bound());
}

}  // namespace
}  // namespace kvasir::model
