#include "eval/cache_search.h"

#include <gtest/gtest.h>

#include <vector>

#include "eval/cache_compare.h"
#include "eval/eval_test_models.h"
#include "eval/random_stream.h"
#include "kvcache/policy_matrix.h"

namespace kvasir::eval {
namespace {

TEST(CacheSearchTest, FindsAPolicyWithinTheBudget) {
  const auto model = TinyGpt2(65);
  RandomStream random(9);
  std::vector<base::TokenId> tokens(60);
  for (auto& token : tokens) token = static_cast<base::TokenId>(random.Below(65));
  base::ThreadTeam team(1);
  const std::uint64_t full =
      PolicyBytes(model->shape(), kvcache::CachePolicy::Full(2, 2), 32, 40).value();
  const auto found = SearchCachePolicy(*model, tokens, full * 2 / 5, {}, team);
  ASSERT_TRUE(found) << found.error().message;
  const PolicyCandidate& best = found.value().candidates[found.value().best];
  EXPECT_LE(best.bytes, full * 2 / 5);
  EXPECT_EQ(best.bytes, PolicyBytes(model->shape(), best.policy, 32, 40).value());
  bool mixed = false;  // What was chosen for each layer fits as a whole, too.
  for (const PolicyCandidate& candidate : found.value().candidates) {
    EXPECT_LE(best.kl, candidate.kl);
    mixed = mixed || candidate.how != "everywhere";
  }
  EXPECT_TRUE(mixed);
  EXPECT_EQ(found.value().layer_kl.size(), 2u);
  EXPECT_EQ(found.value().layer_kl[0][0], 0);  // f32: nothing changes.
  const auto all = SearchCachePolicy(*model, tokens, full, {}, team);
  ASSERT_TRUE(all);
  EXPECT_TRUE(all.value().candidates[all.value().best].policy.IsFull());
  const auto refused = SearchCachePolicy(*model, tokens, 10, {}, team);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
}

TEST(CacheSearchTest, SettingsAreLegalAndGoByHead) {
  model::ModelShape shape;
  shape.context = 128;
  for (const kvcache::HeadPolicy& setting : SearchedSettings(shape)) {
    const kvcache::PolicyFeatureSet features =
        FeaturesOf(setting) | Only(kvcache::PolicyFeature::kSomeHeads);
    EXPECT_EQ(kvcache::FirstConflict(features, /*rotary=*/true), nullptr) << PolicyOptions(setting);
  }
  EXPECT_EQ(SearchedSettings(shape)[0], kvcache::HeadPolicy{});
  shape.context = 1;
  for (const kvcache::HeadPolicy& setting : SearchedSettings(shape)) {
    EXPECT_EQ(setting.window, 0u);
  }
}

TEST(CacheSearchTest, TheSearchLeavesTextToMeasureOn) {
  model::ModelShape shape;
  shape.context = 128;
  EXPECT_EQ(CalibrationTokens(shape, 1000), 500u);
  EXPECT_EQ(CalibrationTokens(shape, 100'000), 2048u);
  shape.context = 1024;
  EXPECT_EQ(CalibrationTokens(shape, 100'000), 4096u);
}

TEST(CacheSearchTest, LatentModelsHaveNothingToChoose) {
  const auto inner = TinyGpt2(65);
  class Latent : public model::Model {
   public:
    explicit Latent(const model::Model& like) : shape_(like.shape()) { shape_.latent_dim = 8; }
    const model::ModelShape& shape() const override { return shape_; }
    base::Result<void> Forward(std::span<const model::BatchItem>, model::Scratch&,
                               base::ThreadTeam&, std::span<float>) const override {
      return base::Success();
    }

   private:
    model::ModelShape shape_;
  } latent(*inner);
  base::ThreadTeam team(1);
  const std::vector<base::TokenId> tokens(9, 1u);
  EXPECT_EQ(SearchCachePolicy(latent, tokens, 1000, {}, team).error().message,
            "there is nothing to search for: the model's latent attention (MLA) is always full and "
            "f32");
}

}  // namespace
}  // namespace kvasir::eval
