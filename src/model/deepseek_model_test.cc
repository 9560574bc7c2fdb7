// What only latent attention has; forward_test.cc holds the contract for every architecture.
#include "model/deepseek_model.h"

#include <gtest/gtest.h>

#include "kvcache/block_pool.h"
#include "model/model_test_util.h"

namespace kvasir::model {
namespace {

// Logits of every row of a fixed text, in chunks of 7.
std::vector<float> Rows(const DeepseekModel& model) {
  const auto geometry = kvcache::CacheGeometry::Make(model.shape().Cache(16)).value();
  const auto pool =
      kvcache::BlockPool::Make(geometry, {.budget_bytes = 4 * geometry.block_bytes()}).value();
  kvcache::CachedSequence sequence(*pool);
  base::ThreadTeam team(1);
  Scratch scratch;
  std::vector<float> rows;
  for (TokenId first = 0; first < 42; first += 7) {
    const TokenId tokens[] = {first, first + 9, 3, first, 66, 1, first + 2};
    std::vector<float> logits(7 * model.shape().vocab);
    const BatchItem item{&sequence, tokens, 7};
    EXPECT_TRUE(model.Forward(std::span(&item, 1), scratch, team, logits).has_value());
    rows.insert(rows.end(), logits.begin(), logits.end());
  }
  EXPECT_EQ(sequence.held_bytes(), 3 * geometry.block_bytes());
  return rows;
}

class DeepseekModelTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  DeepseekConfig config_ = TestDeepseekConfig(GetParam());
};
INSTANTIATE_TEST_SUITE_P(QueryRanks, DeepseekModelTest, testing::Values(0, 13));

// (latent_dim + rope dimensions) · layers · 4 bytes, and not one more.
TEST_P(DeepseekModelTest, TheCacheHoldsOneEntryALayer) {
  const auto model = DeepseekModel::Make(config_, RandomSource(0.3f)).value();
  EXPECT_EQ(model->shape().kv_heads, 0u);
  EXPECT_EQ(model->shape().latent_dim, 21u);
  EXPECT_EQ(model->shape().rope_dim, 6u);
  const auto geometry = kvcache::CacheGeometry::Make(model->shape().Cache(16)).value();
  EXPECT_EQ(geometry.bytes_per_token(), (21u + 6u) * 2u * 4u);
  const auto pool =
      kvcache::BlockPool::Make(geometry, {.budget_bytes = 9 * geometry.block_bytes()}).value();
  kvcache::CachedSequence sequence(*pool);
  base::ThreadTeam team(1);
  Scratch scratch;
  const std::vector<TokenId> tokens(48, 5);
  const BatchItem item{&sequence, tokens, 0};
  ASSERT_TRUE(model->Forward(std::span(&item, 1), scratch, team, {}).has_value());
  EXPECT_EQ(sequence.held_bytes(), 48u * (21u + 6u) * 2u * 4u);
}

// A row's multiply-adds of all matrices are their elements, each once: W_uk and W_uv too.
TEST_P(DeepseekModelTest, TheWorkOfAStepIsThatOfItsMatrices) {
  const auto model = DeepseekModel::Make(config_, RandomSource(0.3f)).value();
  const StepWork& work = model->shape().work;
  std::uint64_t products = 0, table = 0;
  for (const TensorSpec& spec : DeepseekTensors(config_)) {
    const std::uint64_t numbers = spec.shape.ElementCount().value();
    if (spec.name == "token_embd.weight") table = numbers;
    if (spec.name.starts_with("blk.0.") && spec.shape.rank() == 2) products += numbers;
  }
  EXPECT_EQ(work.before_attention + work.after_attention, products);
  EXPECT_EQ(work.weights, ParameterCount(config_) - table + config_.embedding);
  EXPECT_EQ(work.per_visible, 3u * (21 + 6 + 21));
}

// attn_k_b and attn_v_b say what attn_kv_b says, and give the same bits.
TEST_P(DeepseekModelTest, SplitUpProjectionsAreTheSameModel) {
  const DeepseekConfig& c = config_;
  const TensorSource joint = RandomSource(0.3f);
  std::vector<float> part;
  const TensorSource split = [&](const TensorSpec& spec) -> base::Result<std::span<const float>> {
    const bool is_k = spec.name.ends_with("attn_k_b.weight");
    if (!is_k && !spec.name.ends_with("attn_v_b.weight")) return joint(spec);
    const std::string name = spec.name.substr(0, spec.name.find("attn_")) + "attn_kv_b.weight";
    const auto all = joint({name, {c.heads * (c.nope_dim + c.value_dim), c.latent_dim}}).value();
    part.clear();
    for (std::size_t h = 0; h < c.heads; ++h) {
      const float* up = all.data() + h * (c.nope_dim + c.value_dim) * c.latent_dim;
      if (is_k) {
        for (std::size_t d = 0; d < c.latent_dim; ++d) {
          for (std::size_t n = 0; n < c.nope_dim; ++n) part.push_back(up[n * c.latent_dim + d]);
        }
      } else {
        part.insert(part.end(), up + c.nope_dim * c.latent_dim,
                    up + (c.nope_dim + c.value_dim) * c.latent_dim);
      }
    }
    return std::span<const float>(part);
  };
  DeepseekConfig config = c;
  config.split_up = true;
  EXPECT_EQ(Rows(*DeepseekModel::Make(config, split).value()),
            Rows(*DeepseekModel::Make(c, joint).value()));
}

TEST_P(DeepseekModelTest, ATiedHeadIsTheEmbedding) {
  const TensorSource source = RandomSource(0.3f);
  const auto untied = DeepseekModel::Make(config_, [&](const TensorSpec& spec) {
                        TensorSpec asked = spec;
                        if (spec.name == "output.weight") asked.name = "token_embd.weight";
                        return source(asked);
                      }).value();
  DeepseekConfig config = config_;
  config.tied_head = true;
  const auto tied = DeepseekModel::Make(config, source).value();
  EXPECT_EQ(Rows(*tied), Rows(*untied));
  EXPECT_LT(tied->shape().parameters, untied->shape().parameters);
}

}  // namespace
}  // namespace kvasir::model
