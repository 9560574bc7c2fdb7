#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "base/philox.h"
#include "kernels/scalar_math.h"

namespace kvasir::sampling {
namespace {

using base::ErrorCode;
using base::TokenId;
using base::TokenMask;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Logs(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

TokenId DrawOne(const SamplingOptions& options, const std::vector<float>& logits,
                std::uint32_t position = 0, std::uint64_t seed = 42) {
  Sampler sampler(options, seed);
  return sampler.Draw(logits, {}, position).value().token;
}

// Case C09.
TEST(Sampler, TemperatureZeroIsGreedyWhateverTheSeed) {
  const std::vector<float> logits = {1.0f, 5.0f, 5.000001f, 2.0f};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const SamplingOptions& options :
         {SamplingOptions{.temperature = 0.0f}, SamplingOptions{.temperature = -0.0f},
          SamplingOptions{.temperature = 0.0f, .top_k = 3},
          SamplingOptions{.temperature = 0.0f, .top_p = 0.1f},
          SamplingOptions{.temperature = 1e-45f}}) {
      EXPECT_EQ(DrawOne(options, logits, 3, seed), 2u);
    }
    EXPECT_EQ(DrawOne({.temperature = 1.2e-38f}, logits, 3, seed), 2u);
  }
  EXPECT_EQ(DrawOne({.temperature = 0}, {0, 7, 7, 7}), 1u) << "ties to the lowest id";
  EXPECT_EQ(DrawOne({.temperature = 0}, {-0.0f, 0.0f}), 0u) << "-0 ties with 0";
}

// The prompt's tokens do not count, those generated do, and no count is left over for the next
// draw.
TEST(Sampler, CountPenaltiesLookAtGeneratedTokensOnly) {
  const std::vector<float> logits = {1.0f, 0.5f, 0.0f};
  const std::vector<base::TokenId> history = {0, 0, 1};
  Sampler sampler({.temperature = 0, .presence_penalty = 0.25f, .frequency_penalty = 0.5f}, 1);
  const auto greedy = [&](std::size_t prompt_tokens) {
    return sampler.Draw(logits, history, 3, nullptr, prompt_tokens).value().token;
  };
  EXPECT_EQ(greedy(3), 0u);
  EXPECT_EQ(greedy(2), 0u);
  EXPECT_EQ(greedy(1), 0u);  // 1 − 0.75, 0.5 − 0.75, 0: the first is the largest still.
  EXPECT_EQ(greedy(0), 2u);  // 1 − 1.25.
  EXPECT_EQ(greedy(3), 0u);
  // What is reported stays the model's own.
  EXPECT_EQ(sampler.Draw(logits, history, 3, nullptr, 2).value().logprob,
            Sampler({.temperature = 0}, 1).Draw(logits, history, 3).value().logprob);
}

TEST(Sampler, OptionsAreCheckedAgainstTheVocabulary) {
  Sampler sampler({.banned = {9}}, 1);
  EXPECT_EQ(sampler.Draw(std::vector<float>(9, 0.0f), {}, 0).error().code, ErrorCode::kUsage);
  EXPECT_TRUE(sampler.Draw(std::vector<float>(10, 0.0f), {}, 0).has_value());
  EXPECT_FALSE(Sampler({.temperature = kNan}, 1).Draw(std::vector<float>(9, 0.0f), {}, 0));
}

// Case C11.
TEST(Sampler, NonFiniteLogitsAreAnError) {
  for (float temperature : {0.0f, 1.0f}) {
    Sampler sampler({.temperature = temperature}, 1);
    for (float bad : {kNan, kInf, -kInf}) {
      for (std::size_t at : {0, 50, 99}) {
        std::vector<float> logits(100, 0.0f);
        logits[at] = bad;
        const auto result = sampler.Draw(logits, {}, 0);
        ASSERT_FALSE(result.has_value());
        EXPECT_EQ(result.error().code, ErrorCode::kNumeric);
        EXPECT_NE(result.error().message.find("token " + std::to_string(at) + " "),
                  std::string::npos);
      }
    }
    EXPECT_EQ(sampler.Draw(std::vector<float>(5, -kInf), {}, 0).error().code, ErrorCode::kNumeric);
  }
}

TEST(Sampler, NothingAllowedIsAnErrorNotTokenZero) {
  const std::vector<float> logits(70, 1.0f);
  const TokenMask nothing(70);
  for (float temperature : {0.0f, 1.0f}) {
    Sampler sampler({.temperature = temperature}, 1);
    const auto result = sampler.Draw(logits, {}, 5, &nothing);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
    EXPECT_NE(result.error().message.find("no token is allowed"), std::string::npos);
    TokenMask one(70);
    one.Allow(69);
    EXPECT_EQ(sampler.Draw(logits, {}, 5, &one).value().token, 69u);
  }
}

// Case C01, through the whole sampler, and the count it reports.
TEST(Sampler, ReportsHowManyCandidatesTheFiltersLeft) {
  const std::vector<float> logits = Logs({0.5, 0.3, 0.15, 0.05});
  const std::vector<std::pair<float, std::size_t>> cases = {{0.01f, 1}, {0.49f, 1}, {0.51f, 2},
                                                            {0.79f, 2}, {0.81f, 3}, {0.94f, 3},
                                                            {0.96f, 4}, {1.0f, 4}};
  for (auto [p, count] : cases) {
    Sampler sampler({.temperature = 1, .top_p = p}, 3);
    EXPECT_EQ(sampler.Draw(logits, {}, 0).value().candidates, count) << p;
  }
  EXPECT_EQ(Sampler({.temperature = 0}, 3).Draw(logits, {}, 0).value().candidates, 1u);
}

// Case C05: k = 0 is off, not 1; Case C07: no other draw's k matters.
TEST(Sampler, TopKZeroIsOff) {
  const std::vector<float> logits(4, 0.0f);
  std::map<TokenId, int> off, two;
  for (std::uint32_t position = 0; position < 400; ++position) {
    ++off[DrawOne({.temperature = 1, .top_k = 0}, logits, position)];
    ++two[DrawOne({.temperature = 1, .top_k = 2}, logits, position)];
  }
  ASSERT_EQ(off.size(), 4u);
  for (auto [id, count] : off) EXPECT_NEAR(count, 100, 40) << id;
  ASSERT_EQ(two.size(), 2u);
  EXPECT_TRUE(two.contains(0) && two.contains(1));
}

// Case C27: the model's own log-probability, whatever temperature, penalty and filters.
TEST(Sampler, ReportsTheModelsOwnLogProbability) {
  const std::vector<float> logits = {std::log(3.0f), 0.0f};
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 0}, SamplingOptions{.temperature = 1},
        SamplingOptions{.temperature = 2},
        SamplingOptions{.temperature = 1, .top_k = 1, .repeat_penalty = 5.0f},
        SamplingOptions{.temperature = 1, .banned = {0}},
        SamplingOptions{.temperature = 1, .logit_bias = {{1, 50.0f}}}}) {
    Sampler sampler(options, 11);
    const DrawnToken drawn = sampler.Draw(logits, std::vector<TokenId>{0}, 0).value();
    EXPECT_NEAR(drawn.logprob, drawn.token == 0 ? -0.287682 : -1.386294, 1e-6);
  }
}

// Case C31: odd sizes, the last token reachable, by every path.
TEST(Sampler, OddVocabularySizes) {
  for (std::size_t n : {1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 65, 127, 257}) {
    for (SamplingOptions options :
         {SamplingOptions{.temperature = 0}, SamplingOptions{.temperature = 0.8f},
          SamplingOptions{.temperature = 0.8f, .top_k = 1}, SamplingOptions{.top_p = 0.5f},
          SamplingOptions{.min_p = 0.5f}}) {
      std::vector<float> logits(n, -50.0f);
      logits[n - 1] = 50.0f;
      Sampler sampler(options, 9);
      const DrawnToken drawn = sampler.Draw(logits, {}, 0).value();
      EXPECT_EQ(drawn.token, n - 1);
      if (n == 1) {
        EXPECT_EQ(drawn.logprob, 0.0);
      }
    }
  }
}

// Case C29: what the caller does not pass does not exist.
TEST(Sampler, PaddedRowsAreNotPassed) {
  std::vector<float> logits(128, 0.0f);
  std::fill(logits.begin(), logits.begin() + 65, -1.0f);
  for (std::uint32_t position = 0; position < 200; ++position) {
    Sampler sampler({.temperature = 1}, 4);
    const DrawnToken drawn = sampler.Draw(std::span(logits).first(65), {}, position).value();
    EXPECT_LT(drawn.token, 65u);
    EXPECT_NEAR(drawn.logprob, -std::log(65.0), 1e-6);
  }
}

// The rule of step 11, written out: Philox, ascending ids, first cumulative weight above u · total.
TokenId Oracle(const std::vector<float>& logits, float temperature, std::uint64_t seed,
               std::uint32_t choice, std::uint32_t position) {
  const float max = *std::max_element(logits.begin(), logits.end());
  std::vector<double> weights;
  double total = 0;
  for (float logit : logits) {
    weights.push_back(static_cast<double>(kernels::ExpF32((logit - max) / temperature)));
    total += weights.back();
  }
  const auto words = base::Philox4x32(seed, {choice, position, 0, 0});
  const double goal = base::UniformDouble(words[0], words[1]) * total;
  double sum = 0;
  for (TokenId id = 0; id < weights.size(); ++id) {
    sum += weights[id];
    if (sum > goal) return id;
  }
  return static_cast<TokenId>(weights.size() - 1);
}

TEST(Sampler, DrawsFollowTheStatedRuleExactly) {
  constexpr unsigned kSeed = 77;
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  for (int trial = 0; trial < 400; ++trial) {
    const std::size_t n = 1 + random() % 400;
    std::vector<float> logits(n);
    for (float& logit : logits) logit = normal(random);
    const std::uint64_t seed = std::uint64_t{random()} << 32 | random();
    const auto choice = static_cast<std::uint32_t>(random());
    const auto position = static_cast<std::uint32_t>(random());
    const float temperature = 0.3f + static_cast<float>(random() % 100) / 50.0f;
    Sampler dense({.temperature = temperature}, seed, choice);
    // Filters that filter nothing take the other path and must agree.
    Sampler filtered({.temperature = temperature, .top_k = static_cast<std::uint32_t>(n)}, seed,
                     choice);
    const TokenId expected = Oracle(logits, temperature, seed, choice, position);
    ASSERT_EQ(dense.Draw(logits, {}, position).value().token, expected)
        << "seed " << kSeed << " trial " << trial;
    ASSERT_EQ(filtered.Draw(logits, {}, position).value().token, expected)
        << "seed " << kSeed << " trial " << trial;
  }
}

// Pearson's statistic over 60,000 draws; 30.0 is the 99.95 % point for 9 degrees of freedom
// (29.67), and the draws are fixed by the seed.
double ChiSquare(const SamplingOptions& options, const std::vector<float>& logits,
                 const std::vector<double>& expected) {
  constexpr int kDraws = 60000;
  Sampler sampler(options, 20240229);
  std::vector<int> counts(logits.size(), 0);
  for (std::uint32_t i = 0; i < kDraws; ++i) ++counts[sampler.Draw(logits, {}, i).value().token];
  double statistic = 0;
  for (std::size_t id = 0; id < counts.size(); ++id) {
    if (expected[id] == 0) {
      EXPECT_EQ(counts[id], 0) << id;
      continue;
    }
    const double mean = kDraws * expected[id];
    statistic += (counts[id] - mean) * (counts[id] - mean) / mean;
  }
  return statistic;
}

std::vector<double> Normalised(std::vector<double> p) {
  double sum = 0;
  for (double x : p) sum += x;
  for (double& x : p) x /= sum;
  return p;
}

TEST(Sampler, FrequenciesMatchTheProbabilities) {
  const std::vector<double> p = {0.3, 0.2, 0.15, 0.1, 0.08, 0.07, 0.05, 0.03, 0.015, 0.005};
  const std::vector<float> logits = Logs(p);
  EXPECT_LT(ChiSquare({.temperature = 1}, logits, p), 30.0);
  std::vector<double> flat = p, sharp = p, four = p, nucleus = p, banned = p;
  for (double& x : flat) x = std::pow(x, 1 / 1.5);
  EXPECT_LT(ChiSquare({.temperature = 1.5f}, logits, Normalised(flat)), 30.0);
  for (double& x : sharp) x = std::pow(x, 2.0);
  EXPECT_LT(ChiSquare({.temperature = 0.5f}, logits, Normalised(sharp)), 30.0);
  std::fill(four.begin() + 4, four.end(), 0.0);
  EXPECT_LT(ChiSquare({.temperature = 1, .top_k = 4}, logits, Normalised(four)), 30.0);
  std::fill(nucleus.begin() + 3, nucleus.end(), 0.0);
  EXPECT_LT(ChiSquare({.temperature = 1, .top_p = 0.6f}, logits, Normalised(nucleus)), 30.0);
  banned[0] = 0;
  EXPECT_LT(ChiSquare({.temperature = 1, .banned = {0}}, logits, Normalised(banned)), 30.0);
}

// Case C23: 64 choices at one position spread over the vocabulary.
TEST(Sampler, ChoicesAreIndependent) {
  const std::vector<float> logits(64, 0.0f);
  std::set<TokenId> tokens;
  for (std::uint32_t choice = 0; choice < 64; ++choice) {
    Sampler sampler({.temperature = 1}, 5, choice);
    tokens.insert(sampler.Draw(logits, {}, 0).value().token);
  }
  // 64 balls in 64 boxes hit 40.6 of them on average, standard deviation 3.
  EXPECT_GT(tokens.size(), 30u);
}

// Case C21: a draw is a function of its own arguments; earlier draws, other samplers and their
// order change nothing. All 64 bits of the seed matter (Case C25).
TEST(Sampler, DrawsDoNotDependOnNeighboursOrOrder) {
  constexpr unsigned kSeed = 8;
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<std::vector<float>> rows(40, std::vector<float>(300));
  for (auto& row : rows) {
    for (float& logit : row) logit = normal(random);
  }
  const SamplingOptions options = {
      .temperature = 0.8f, .top_k = 50, .top_p = 0.9f, .repeat_penalty = 1.2f};
  const std::vector<TokenId> history = {1, 2, 3, 2};
  std::vector<TokenId> alone;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    Sampler fresh(options, 42);
    alone.push_back(fresh.Draw(rows[i], history, i).value().token);
  }
  Sampler used(options, 42), neighbour({.temperature = 1.5f}, 7), greedy({.temperature = 0}, 42);
  for (std::uint32_t i = static_cast<std::uint32_t>(rows.size()); i-- > 0;) {
    ASSERT_TRUE(neighbour.Draw(rows[(i + 1) % rows.size()], {}, i).has_value());
    ASSERT_TRUE(greedy.Draw(rows[i], history, i).has_value());
    EXPECT_EQ(used.Draw(rows[i], history, i).value().token, alone[i]);
  }
  int different = 0;
  for (std::uint64_t seed : {42ull + (1ull << 32), 42ull + (1ull << 63), 43ull}) {
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      different += DrawOne({.temperature = 2}, rows[i], i, seed) !=
                   DrawOne({.temperature = 2}, rows[i], i, 42);
    }
  }
  EXPECT_GT(different, 90);
}

// The scratch keeps no trace of another vocabulary size.
TEST(Sampler, VocabularySizeMayChange) {
  Sampler sampler({.temperature = 1, .top_p = 0.9f}, 6);
  for (std::size_t n : {10, 300, 3, 129}) {
    std::vector<float> logits(n, 0.0f);
    logits[n / 2] = 1.0f;
    Sampler fresh({.temperature = 1, .top_p = 0.9f}, 6);
    EXPECT_EQ(sampler.Draw(logits, {}, 4).value().token, fresh.Draw(logits, {}, 4).value().token);
  }
}

}  // namespace
}  // namespace kvasir::sampling
