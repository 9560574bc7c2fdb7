#include "training/start_weights.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace kvasir::training {
namespace {

class StartWeightsTest : public testing::Test {
 protected:
  StartWeightsTest() : text_(40) {
    for (std::size_t i = 0; i < text_.size(); ++i) text_[i] = static_cast<base::TokenId>(i % 9);
    gpt2_.layers = 1;
    gpt2_.heads = 2;
    gpt2_.embedding = 8;
    gpt2_.feed_forward = 12;
    gpt2_.context = 6;
    gpt2_.vocab = 9;
    llama_.layers = 1;
    llama_.heads = 2;
    llama_.kv_heads = 1;
    llama_.head_dim = llama_.rope.dimensions = 4;
    llama_.embedding = 8;
    llama_.feed_forward = 12;
    llama_.context = 6;
    llama_.vocab = 9;
  }
  std::unique_ptr<Trainer> NewTrainer(const ModelConfig& config, std::uint64_t seed) {
    TrainOptions options;
    options.seed = seed;
    options.batch = 2;
    options.shards = 1;
    return Trainer::Make(config, options, text_, team_).value();
  }

  std::vector<base::TokenId> text_;
  model::Gpt2Config gpt2_;
  model::LlamaConfig llama_;
  base::ThreadTeam team_{1};
};

// A trainer of other weights that takes those of a model has the model's, and goes on like the one
// that they come from.
TEST_F(StartWeightsTest, AreTheModels) {
  for (const ModelConfig& config : {ModelConfig(gpt2_), ModelConfig(llama_)}) {
    auto first = NewTrainer(config, 1);
    const auto model = config.MakeModel(first->Source()).value();
    const auto weights = StartWeightsOf(*model);
    ASSERT_TRUE(weights.has_value());
    EXPECT_EQ(weights->config, config);
    auto second = NewTrainer(config, 2);
    EXPECT_NE(second->Evaluate(text_).nll, first->Evaluate(text_).nll);
    TakeWeights(*weights, *second);
    EXPECT_EQ(second->Evaluate(text_).nll, first->Evaluate(text_).nll);
    // Their name is told by every number.
    EXPECT_NE(weights->Hash(), 0u);
    EXPECT_EQ(StartWeightsOf(*config.MakeModel(second->Source()).value())->Hash(), weights->Hash());
    second->parameters()[0] += 1;
    EXPECT_NE(StartWeightsOf(*config.MakeModel(second->Source()).value())->Hash(), weights->Hash());
  }
}

TEST_F(StartWeightsTest, OfWhatIsNotTrainedThereAreNone) {
  class Other : public model::Model {
   public:
    const model::ModelShape& shape() const override { return shape_; }
    base::Result<void> Forward(std::span<const model::BatchItem>, model::Scratch&,
                               base::ThreadTeam&, std::span<float>) const override {
      return base::Success();
    }

   private:
    model::ModelShape shape_;
  };
  EXPECT_FALSE(StartWeightsOf(Other()).has_value());
}

}  // namespace
}  // namespace kvasir::training
