#include "sampling/logit_filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/softmax.h"
#include "sampling/sampling_options.h"

namespace kvasir::sampling {
namespace {

using base::ErrorCode;
using base::TokenId;
using base::TokenMask;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::string Refusal(const SamplingOptions& options, std::size_t vocab_size = 65) {
  const auto result = Validate(options, vocab_size);
  if (result.has_value()) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  return result.error().message;
}

bool Accepted(const SamplingOptions& options) { return Validate(options, 65).has_value(); }

// Cases C03, C05, C09, C15, C19: each limit from both sides, and the message names both.
TEST(SamplingOptions, LimitsAreChecked) {
  EXPECT_TRUE(Accepted({}));
  for (float t : {0.0f, -0.0f, 1e-45f, 1.0f, 3e38f}) EXPECT_TRUE(Accepted({.temperature = t})) << t;
  for (float t : {-1.0f, -1e-45f, kNan, kInf, -kInf})
    EXPECT_FALSE(Accepted({.temperature = t})) << t;
  EXPECT_EQ(Refusal({.temperature = -1.0f}),
            "temperature -1 is not allowed: it must be 0 (greedy) or a finite number above 0");
  EXPECT_NE(Refusal({.temperature = kNan}).find("nan"), std::string::npos);
  EXPECT_TRUE(SamplingOptions{.temperature = -0.0f}.greedy());
  EXPECT_TRUE(SamplingOptions{.temperature = 1e-45f}.greedy());
  EXPECT_FALSE(SamplingOptions{.temperature = 1e-30f}.greedy());

  EXPECT_TRUE(Accepted({.top_k = 65}));
  EXPECT_EQ(Refusal({.top_k = 66}),
            "top-k 66 is larger than the vocabulary: it must be 0 (off) to 65");

  for (float p : {1e-6f, 0.5f, 1.0f}) EXPECT_TRUE(Accepted({.top_p = p})) << p;
  for (float p : {0.0f, -0.0f, -0.5f, 1.0001f, 2.0f, kNan, kInf}) {
    EXPECT_FALSE(Accepted({.top_p = p})) << p;
  }
  EXPECT_EQ(Refusal({.top_p = 2.0f}),
            "top-p 2 is not allowed: it must be above 0 and at most 1 (off)");

  for (float p : {0.0f, 0.05f, 1.0f}) EXPECT_TRUE(Accepted({.min_p = p})) << p;
  for (float p : {-0.1f, 1.1f, kNan}) EXPECT_FALSE(Accepted({.min_p = p})) << p;

  for (float r : {0.5f, 1.0f, 1e-45f, 3e38f}) EXPECT_TRUE(Accepted({.repeat_penalty = r})) << r;
  for (float r : {0.0f, -1.0f, kNan, kInf}) EXPECT_FALSE(Accepted({.repeat_penalty = r})) << r;

  EXPECT_TRUE(Accepted({.banned = {0, 64}}));
  EXPECT_EQ(Refusal({.banned = {3, 65}}),
            "banned token id 65 is outside the vocabulary of 65 tokens");

  EXPECT_TRUE(Accepted({.logit_bias = {{64, -100.0f}, {0, 100.0f}}}));
  EXPECT_NE(Refusal({.logit_bias = {{65, 5.0f}}}).find("token id 65"), std::string::npos);
  for (float b : {101.0f, -101.0f, kNan, kInf}) {
    EXPECT_FALSE(Accepted({.logit_bias = {{3, b}}})) << b;
  }
}

std::vector<float> Penalised(const SamplingOptions& options, std::vector<float> scores,
                             const std::vector<TokenId>& history) {
  TokenMask seen(scores.size());
  EXPECT_TRUE(ApplyRepeatPenalty(options, history, seen, scores).has_value());
  EXPECT_EQ(seen.Count(), 0u);
  return scores;
}

// Case C15.
TEST(SamplingOptions, CountPenaltiesAreChecked) {
  EXPECT_EQ(Refusal({.presence_penalty = 2.0f, .frequency_penalty = -2.0f}), "accepted");
  EXPECT_EQ(Refusal({.presence_penalty = 2.5f}),
            "presence penalty 2.5 is not allowed: it must be -2 to 2");
  EXPECT_EQ(Refusal({.frequency_penalty = -3.0f}),
            "frequency penalty -3 is not allowed: it must be -2 to 2");
  EXPECT_NE(Refusal({.frequency_penalty = kNan}), "accepted");
}

TEST(RepeatPenalty, NegativeLogitsBecomeLessLikelyToo) {
  EXPECT_EQ(Penalised({.repeat_penalty = 2}, {2, -2, 0}, {0, 1, 2}),
            (std::vector<float>{1, -4, 0}));
  EXPECT_EQ(Penalised({.repeat_penalty = 2}, {2, -2, 0}, {0, 0, 1, 0, 1}),
            (std::vector<float>{1, -4, 0}))
      << "once per token, however often it occurs";
  EXPECT_EQ(Penalised({.repeat_penalty = 1}, {2, -2, 0}, {0, 1, 2}),
            (std::vector<float>{2, -2, 0}));
}

// Case C17.
TEST(RepeatPenalty, LooksAtTheLastTokens) {
  const std::vector<float> ones(8, 1.0f);
  EXPECT_EQ(Penalised({.repeat_penalty = 2, .repeat_last_n = 2}, ones, {5, 6, 7}),
            (std::vector<float>{1, 1, 1, 1, 1, 1, 0.5, 0.5}));
  for (std::uint32_t n : {3u, 99u, SamplingOptions::kWholeHistory}) {
    EXPECT_EQ(Penalised({.repeat_penalty = 2, .repeat_last_n = n}, ones, {5, 6, 7}),
              (std::vector<float>{1, 1, 1, 1, 1, 0.5, 0.5, 0.5}));
  }
  EXPECT_EQ(Penalised({.repeat_penalty = 2, .repeat_last_n = 0}, ones, {5, 6, 7}), ones);
  EXPECT_EQ(Penalised({.repeat_penalty = 2}, ones, {}), ones);
}

TEST(RepeatPenalty, StaysFiniteAndRefusesForeignTokens) {
  const std::vector<float> extreme =
      Penalised({.repeat_penalty = 1e-30f}, {3e38f, -3e38f, 1}, {0, 1});
  EXPECT_EQ(extreme[0], std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(extreme[1]));
  std::vector<float> scores(3, 1.0f);
  TokenMask seen(3);
  const auto result =
      ApplyRepeatPenalty({.repeat_penalty = 2}, std::vector<TokenId>{1, 3}, seen, scores);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("token id 3"), std::string::npos);
  EXPECT_EQ(scores[1], 1.0f);
}

TEST(CountPenalties, FollowOpenAisFormula) {
  const SamplingOptions options = {.presence_penalty = 0.5f, .frequency_penalty = 0.25f};
  std::array<float, 4> scores = {1.0f, -1.0f, 0.0f, 2.0f};
  std::array<std::uint32_t, 4> counts = {};
  const std::array<TokenId, 5> generated = {1, 3, 1, 1, 0};
  ASSERT_TRUE(ApplyCountPenalties(options, generated, counts, scores));
  EXPECT_EQ(scores, (std::array<float, 4>{0.25f, -2.25f, 0.0f, 1.25f}));
  EXPECT_EQ(counts, (std::array<std::uint32_t, 4>{}));
  // Below 0 they make repeats likelier.
  const SamplingOptions negative = {.presence_penalty = -2.0f};
  ASSERT_TRUE(ApplyCountPenalties(negative, generated, counts, scores));
  EXPECT_EQ(scores, (std::array<float, 4>{2.25f, -0.25f, 0.0f, 3.25f}));
}

TEST(CountPenalties, OffStayFiniteAndRefuseForeignTokens) {
  std::array<float, 2> scores = {-std::numeric_limits<float>::max(), 1.0f};
  std::array<std::uint32_t, 2> counts = {};
  const std::array<TokenId, 1> first = {0};
  ASSERT_TRUE(ApplyCountPenalties({}, first, counts, scores));
  EXPECT_EQ(scores[1], 1.0f);
  ASSERT_TRUE(ApplyCountPenalties({.presence_penalty = 2.0f}, first, counts, scores));
  EXPECT_EQ(scores[0], -std::numeric_limits<float>::max());
  const std::array<TokenId, 1> foreign = {2};
  const auto refused = ApplyCountPenalties({.frequency_penalty = 1.0f}, foreign, counts, scores);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_EQ(counts, (std::array<std::uint32_t, 2>{}));
}

TEST(Masks, BanExactlyWhatIsNotAllowed) {
  for (std::size_t n : {1, 3, 63, 64, 65, 130, 257}) {
    std::mt19937 random(static_cast<unsigned>(n));
    TokenMask mask(n);
    for (TokenId id = 0; id < n; ++id) {
      if (random() % 3 == 0 && (id < 64 || id >= 128)) mask.Allow(id);
    }
    std::vector<float> scores(n, 1.5f);
    const TokenId banned = static_cast<TokenId>(n - 1);
    ApplyMasks({.banned = {banned}}, &mask, scores);
    for (TokenId id = 0; id < n; ++id) {
      EXPECT_EQ(scores[id], mask.Test(id) && id != banned ? 1.5f : -kInf) << n << " " << id;
    }
  }
  std::vector<float> scores(3, 0.0f);
  ApplyLogitBias({.logit_bias = {{1, -2.5f}}}, scores);
  ApplyMasks({}, nullptr, scores);
  EXPECT_EQ(scores, (std::vector<float>{0, -2.5, 0}));
}

std::vector<TokenId> Kept(const std::vector<float>& weights, const SamplingOptions& options) {
  CandidateFilter filter;
  filter.Apply(weights, options);
  EXPECT_EQ(filter.ids().size(), filter.weights().size());
  for (std::size_t i = 0; i < filter.ids().size(); ++i) {
    EXPECT_EQ(filter.weights()[i], weights[filter.ids()[i]]);
  }
  return {filter.ids().begin(), filter.ids().end()};
}

using Ids = std::vector<TokenId>;

// Case C01: the smallest set that reaches p.
TEST(CandidateFilter, TopPIsTheSmallestSet) {
  const std::vector<float> weights = {0.5f, 0.3f, 0.15f, 0.05f};
  const std::vector<std::pair<float, std::size_t>> cases = {{0.01f, 1}, {0.49f, 1}, {0.51f, 2},
                                                            {0.79f, 2}, {0.81f, 3}, {0.94f, 3},
                                                            {0.96f, 4}, {1.0f, 4}};
  for (auto [p, count] : cases) EXPECT_EQ(Kept(weights, {.top_p = p}).size(), count) << p;
  EXPECT_EQ(Kept({0.97f, 0.01f, 0.01f, 0.01f}, {.top_p = 0.9f}), Ids{0});
  // Ties: the lower ids.
  EXPECT_EQ(Kept({0.2f, 0.2f, 0.2f, 0.2f, 0.2f}, {.top_p = 0.55f}), (Ids{0, 1, 2}));
}

// Case C13: top-p sees what top-k left as a distribution of its own.
TEST(CandidateFilter, TopKThenTopP) {
  const std::vector<float> weights = {0.4f, 0.3f, 0.2f, 0.1f};
  EXPECT_EQ(Kept(weights, {.top_k = 2, .top_p = 0.55f}), Ids{0});
  EXPECT_EQ(Kept(weights, {.top_p = 0.55f}), (Ids{0, 1}));
}

TEST(CandidateFilter, MinPIsRelativeToTheLargestAndComesLast) {
  const std::vector<float> weights = {0.1f, 0.4f, 0.2f, 0.3f};
  EXPECT_EQ(Kept(weights, {.min_p = 0.6f}), (Ids{1, 3}));
  EXPECT_EQ(Kept(weights, {.min_p = 1.0f}), Ids{1});
  EXPECT_EQ(Kept({0.4f, 0.1f, 0.4f}, {.min_p = 1.0f}), (Ids{0, 2}));
  // Before top-p, min-p would leave 0.4 and 0.3, of which 0.5 of the mass is token 1 alone.
  EXPECT_EQ(Kept(weights, {.top_p = 0.5f, .min_p = 0.6f}), (Ids{1, 3}));
}

// Case C05: k = 0 is off; a k beyond the positive weights keeps them all.
TEST(CandidateFilter, TopK) {
  const std::vector<float> weights = {0, 0.5f, 1, 0.5f, 0.25f};
  EXPECT_EQ(Kept(weights, {.top_k = 0}), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(Kept(weights, {.top_k = 1}), Ids{2});
  EXPECT_EQ(Kept(weights, {.top_k = 2}), (Ids{1, 2}));
  EXPECT_EQ(Kept(weights, {.top_k = 3}), (Ids{1, 2, 3}));
  EXPECT_EQ(Kept(weights, {.top_k = 5}), (Ids{1, 2, 3, 4}));
}

// The obvious way: sort everything, walk.
Ids Oracle(const std::vector<float>& weights, const SamplingOptions& options) {
  Ids ids;
  for (TokenId id = 0; id < weights.size(); ++id) {
    if (weights[id] > 0) ids.push_back(id);
  }
  std::stable_sort(ids.begin(), ids.end(),
                   [&](TokenId a, TokenId b) { return weights[a] > weights[b]; });
  if (options.top_k != 0 && options.top_k < ids.size()) ids.resize(options.top_k);
  if (options.top_p < 1) {
    Ids ascending = ids;
    std::sort(ascending.begin(), ascending.end());
    double mass = 0;
    for (TokenId id : ascending) mass += static_cast<double>(weights[id]);
    double sum = 0;
    std::size_t count = 0;
    while (count < ids.size() && sum < static_cast<double>(options.top_p) * mass) {
      sum += static_cast<double>(weights[ids[count++]]);
    }
    ids.resize(count);
  }
  const float least = options.min_p * weights[ids[0]];
  std::erase_if(ids, [&](TokenId id) { return weights[id] < least; });
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(CandidateFilter, RandomWeightsWithTiesAgreeWithTheOracle) {
  constexpr unsigned kSeed = 2024;
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  CandidateFilter filter;
  for (int trial = 0; trial < 1500; ++trial) {
    const std::size_t n = trial % 50 == 0 ? 6915 : 1 + random() % 300;
    const float spread = std::array{0.0f, 0.3f, 2.0f, 30.0f}[random() % 4];
    const float grain = std::array{0.0f, 0.25f, 1.0f}[random() % 3];
    std::vector<float> scores(n);
    for (float& score : scores) {
      score = normal(random) * spread;
      if (grain > 0) score = std::round(score / grain) * grain;
      if (random() % 10 == 0) score = -kInf;
    }
    scores[random() % n] = 1.0f;
    std::vector<float> weights(n);
    kernels::SoftmaxWeights(scores.data(), n, kernels::MaxValue(scores.data(), n), 0.8f,
                            weights.data());
    SamplingOptions options;
    if (random() % 2 == 0) options.top_k = 1 + static_cast<std::uint32_t>(random() % n);
    if (random() % 2 == 0) options.top_p = static_cast<float>(1 + random() % 999) / 1000.0f;
    if (random() % 3 == 0) options.min_p = static_cast<float>(random() % 1000) / 1000.0f;
    filter.Apply(weights, options);
    ASSERT_EQ(Ids(filter.ids().begin(), filter.ids().end()), Oracle(weights, options))
        << "seed " << kSeed << " trial " << trial << " n " << n << " k " << options.top_k << " p "
        << options.top_p << " min-p " << options.min_p;
  }
}

}  // namespace
}  // namespace kvasir::sampling
