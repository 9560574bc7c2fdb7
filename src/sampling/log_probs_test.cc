#include "sampling/log_probs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace kvasir::sampling {
namespace {

using base::ErrorCode;

// Case C27: of the raw distribution, never above 0.
TEST(LogProbs, KnownValues) {
  const std::vector<float> logits = {std::log(3.0f), 0.0f};
  EXPECT_NEAR(LogProb(logits, 0).value(), -0.287682, 1e-6);
  EXPECT_NEAR(LogProb(logits, 1).value(), -1.386294, 1e-6);
  EXPECT_NEAR(LogSumExp(logits).value(), std::log(4.0), 1e-7);
  const auto top = TopLogProbs(logits, 2).value();
  EXPECT_EQ(top[0].id, 0u);
  EXPECT_NEAR(top[0].prob, 0.75, 1e-7);
  EXPECT_NEAR(top[1].prob, 0.25, 1e-7);
}

// Case C31: one token has probability 1, exactly.
TEST(LogProbs, VocabularyOfOne) {
  for (float logit : {0.0f, -7.5f, 3e38f}) {
    const std::vector<float> logits = {logit};
    EXPECT_EQ(LogProb(logits, 0).value(), 0.0);
    EXPECT_EQ(TopLogProbs(logits, 1).value()[0].prob, 1.0);
  }
}

// Against double precision from the C library. An f32 exponential is at most 1 ULP off, its
// argument half an ULP of |logit − max| <= 40: e^(20 · 2^−23) … together under 3e-6 relative.
TEST(LogProbs, AgreeWithDoublePrecisionAtEverySize) {
  constexpr unsigned kSeed = 5;
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(0.0f, 4.0f);
  for (std::size_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 65, 127, 255, 256, 257, 6915}) {
    std::vector<float> logits(n);
    for (float& logit : logits) logit = normal(random);
    double sum = 0;
    for (float logit : logits) sum += std::exp(static_cast<double>(logit));
    EXPECT_NEAR(LogSumExp(logits).value(), std::log(sum), 3e-6) << n;
    const auto top = TopLogProbs(logits, n).value();
    ASSERT_EQ(top.size(), n);
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_LE(top[i].logprob, 0.0);
      EXPECT_EQ(top[i].logprob, LogProb(logits, top[i].id).value());
      total += top[i].prob;
      if (i > 0) {
        EXPECT_GE(logits[top[i - 1].id], logits[top[i].id]) << n;
      }
      if (n > 300 && i > 20) break;
    }
    if (n <= 300) {
      EXPECT_NEAR(total, 1.0, 1e-5) << n;
    }
  }
}

TEST(LogProbs, TiesGoToTheLowerId) {
  const std::vector<float> logits = {-1.0f, 0.0f, -0.0f, 2.0f, 0.0f, 2.0f, -1.0f};
  const auto top = TopLogProbs(logits, 7).value();
  std::vector<base::TokenId> ids;
  for (const TokenLogProb& t : top) ids.push_back(t.id);
  EXPECT_EQ(ids, (std::vector<base::TokenId>{3, 5, 1, 2, 4, 0, 6}));
  EXPECT_TRUE(TopLogProbs(logits, 0).value().empty());
}

TEST(LogProbs, RefusesWhatIsNotThere) {
  const std::vector<float> logits = {1, 2, 3};
  EXPECT_EQ(LogProb(logits, 3).error().code, ErrorCode::kUsage);
  EXPECT_EQ(LogProb(logits, 3).error().message, "token id 3 is outside the vocabulary of 3 tokens");
  const auto top = TopLogProbs(logits, 4);
  ASSERT_FALSE(top.has_value());
  EXPECT_EQ(top.error().code, ErrorCode::kUsage);
  EXPECT_NE(top.error().message.find("4 most probable"), std::string::npos);
}

// Case C11.
TEST(LogProbs, NonFiniteLogitsAreAnErrorThatNamesTheToken) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    for (std::size_t at : {std::size_t{0}, std::size_t{20}, std::size_t{40}}) {
      std::vector<float> logits(41, 0.5f);
      logits[at] = bad;
      for (const auto& error : {LogSumExp(logits).error(), LogProb(logits, 1).error(),
                                TopLogProbs(logits, 2).error()}) {
        EXPECT_EQ(error.code, ErrorCode::kNumeric);
        EXPECT_NE(error.message.find("token " + std::to_string(at) + " "), std::string::npos)
            << error.message;
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::sampling
