// Against a model trained in PyTorch and the numbers PyTorch computed with it. Left out where that
// folder is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/env.h"
#include "eval/model_summary.h"
#include "eval/perplexity.h"
#include "eval/sequence_logits.h"
#include "formats/gguf_reader.h"
#include "formats/npy.h"
#include "kernels/softmax.h"
#include "model/model_file.h"

namespace kvasir::eval {
namespace {

constexpr const char* kText = "大漠孤烟直，长河落日圆。萧关逢候骑，都护在燕然。";

class ReferenceTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("KVASIR_REFERENCE");
    folder_ = folder != nullptr ? folder : KVASIR_SOURCE_DIR "/../shared/reference";
    if (!std::filesystem::exists(folder_ + "/lesson-torch.gguf")) GTEST_SKIP() << "no " << folder_;
    auto loaded = model::LoadModel(base::Env::Default(), folder_ + "/lesson-torch.gguf");
    ASSERT_TRUE(loaded) << loaded.error().message;
    loaded_ = std::move(loaded.value());
  }

  std::string folder_;
  model::LoadedModel loaded_;
};

TEST_F(ReferenceTest, LogitsOfAPoem) {
  const auto expected = formats::ReadNpyF32(base::Env::Default(), folder_ + "/logits.npy");
  ASSERT_TRUE(expected) << expected.error().message;
  const auto tokens = loaded_.tokenizer->Encode(kText);
  ASSERT_TRUE(tokens);
  base::ThreadTeam team(1);
  const auto logits = SequenceLogits(*loaded_.model, tokens.value(), {}, team);
  ASSERT_TRUE(logits);
  ASSERT_EQ(expected.value().shape, (tensor::Shape{24, 6915}));
  ASSERT_EQ(logits.value().size(), expected.value().values.size());
  // Both sides err by f32 roundings in different orders. A logit is a sum of 128 products over
  // values that are themselves sums of up to 512; along 4 layers the residual stream takes 8 such
  // sums: (8 · 512 + 128) · 2^−24 of the size of the terms, about 1 here, bounds either side's
  // error by 2.6e-4.
  const double bound = 2 * (8 * 512 + 128) * 0x1p-24;
  double largest = 0;
  for (std::size_t i = 0; i < logits.value().size(); ++i) {
    const double difference = std::fabs(static_cast<double>(logits.value()[i]) -
                                        static_cast<double>(expected.value().values[i]));
    largest = std::max(largest, difference);
  }
  RecordProperty("largest_difference", std::to_string(largest));
  EXPECT_LT(largest, bound);
}

TEST_F(ReferenceTest, LossOfThePoem) {
  // From PyTorch's own logits, summed here: the loss differs by no more than the logits do, twice.
  const auto expected = formats::ReadNpyF32(base::Env::Default(), folder_ + "/logits.npy");
  ASSERT_TRUE(expected);
  base::ThreadTeam team(2);
  const auto result = EvaluateText(*loaded_.model, *loaded_.tokenizer, kText, {}, team);
  ASSERT_TRUE(result);
  ASSERT_EQ(result.value().tokens, 23u);
  double sum = 0;
  for (std::size_t i = 0; i < 23; ++i) {
    sum += kernels::CrossEntropy(expected.value().values.data() + i * 6915, 6915,
                                 result.value().text_tokens[i + 1]);
  }
  EXPECT_NEAR(result.value().nll, sum / 23, 2e-4);
}

TEST_F(ReferenceTest, SummaryOfTheFile) {
  const auto file = formats::GgufFile::Open(base::Env::Default(), folder_ + "/lesson-torch.gguf");
  ASSERT_TRUE(file);
  const ModelSummary summary = Summarize(file.value());
  EXPECT_EQ(summary.architecture, "gpt2");
  EXPECT_EQ(summary.layers, 4u);
  EXPECT_EQ(summary.heads, 4u);
  EXPECT_EQ(summary.kv_heads, 4u);
  EXPECT_EQ(summary.embedding, 128u);
  EXPECT_EQ(summary.context, 128u);
  EXPECT_EQ(summary.vocab, 6915u);
  EXPECT_EQ(summary.parameters, 2579968u);
  EXPECT_EQ(summary.parameters, loaded_.model->shape().parameters);
  EXPECT_EQ(summary.cache_bytes_per_token, 4096u);
}

}  // namespace
}  // namespace kvasir::eval
