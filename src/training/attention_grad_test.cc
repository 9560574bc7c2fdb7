// Gradients of attention against double precision, with keys and values as queries read them.
#include "training/attention_grad.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/thread_team.h"
#include "kernels/kv_store.h"
#include "kernels/random_test_values.h"
#include "kernels/targets.h"
#include "training/kv_run.h"
#include "training/trained_policy.h"

namespace kvasir::training {
namespace {

struct Case {
  const char* spec;
  std::uint64_t kv_heads;
  std::uint64_t window = 0;
  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << "'" << c.spec << "' kv heads " << c.kv_heads << " window " << c.window;
  }
};

class AttentionGradTest : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kHeads = 4, kDim = 6, kLength = 75;

  static ModelConfig Config() {
    model::LlamaConfig config;
    config.layers = 1;
    config.heads = kHeads;
    config.kv_heads = GetParam().kv_heads;
    config.head_dim = config.rope.dimensions = kDim;
    config.embedding = 24;
    config.feed_forward = 8;
    config.context = 90;  // More than is used.
    config.vocab = 10;
    if (GetParam().window != 0) config.windows = {GetParam().window};
    return config;
  }

  AttentionGradTest()
      : plan_(PlanOf(Config(), TrainedPolicy(Config(), GetParam().spec).value())),
        width_(plan_.attention.qkv_width()),
        first_(kernels::RandomValues(71, kLength * width_, 1, 1.5f)),
        dlast_(kernels::RandomValues(71, kLength * plan_.attention.q_width(), 2, 1.0f)),
        run_(plan_.attention, plan_.runs[0][0]),
        bytes_(run_.Bytes(2, plan_.context)) {
    run_.Place(bytes_.data(), 2, plan_.context);
    for (std::size_t t = 0; t < kLength; ++t) {
      const float* k = first_.data() + t * width_ + plan_.attention.q_width();
      run_.Store(kSequence, kLength, t, k, k + plan_.attention.kv_width());
    }
    base::ThreadTeam team(1);
    team.Run([&](base::Member& member) { run_.CompleteGroups(member, 2, kLength); });
  }

  std::vector<float> Gradient() {
    std::vector<float> dfirst(kLength * width_, 77.0f);
    AttentionGrad grad(plan_, plan_.context);
    for (std::size_t head = 0; head < plan_.attention.kv_heads; ++head) {
      grad.Run(run_, {kSequence, kLength, first_.data(), dlast_.data(), dfirst.data()}, head);
    }
    return dfirst;
  }

  // By the definition, in double precision; magnitude: the sums of absolute terms.
  void Reference(std::vector<double>& dfirst, std::vector<double>& magnitude) const {
    dfirst.assign(kLength * width_, 0);
    magnitude.assign(kLength * width_, 0);
    const AttentionPlan& a = plan_.attention;
    const double scale = 1 / std::sqrt(static_cast<double>(kDim));
    std::vector<float> k(kDim), v(kDim);
    for (std::size_t head = 0; head < kHeads; ++head) {
      const std::size_t kv_head = head / (kHeads / a.kv_heads);
      const std::size_t key = a.q_width() + kv_head * kDim, value = key + a.kv_width();
      for (std::size_t i = 0; i < kLength; ++i) {
        const float* q = first_.data() + i * width_ + head * kDim;
        const float* dout = dlast_.data() + i * a.q_width() + head * kDim;
        const std::size_t begin = kernels::FirstVisible(i, plan_.runs[0][0].window());
        std::vector<double> p, dp;
        std::vector<std::vector<double>> keys;
        double total = 0, mean = 0;
        for (std::size_t j = begin; j <= i; ++j) {
          kernels::LoadKv(run_.View(kSequence, kLength), j, kv_head, k.data(), v.data(), i);
          double score = 0, upstream = 0;
          for (std::size_t d = 0; d < kDim; ++d) {
            score += double{q[d]} * k[d];
            upstream += double{dout[d]} * v[d];
          }
          p.push_back(std::exp(score * scale));
          dp.push_back(upstream);
          keys.emplace_back(k.begin(), k.end());
          total += p.back();
        }
        for (double& weight : p) weight /= total;
        for (std::size_t j = 0; j < p.size(); ++j) mean += p[j] * dp[j];
        for (std::size_t j = 0; j < p.size(); ++j) {
          const double ds = p[j] * (dp[j] - mean) * scale;
          const double size = p[j] * (std::abs(dp[j]) + 8) * scale;  // Of ds's own terms.
          const auto add = [&](std::size_t row, std::size_t column, double term, double abs_term) {
            dfirst[row * width_ + column] += term;
            magnitude[row * width_ + column] += std::abs(abs_term);
          };
          for (std::size_t d = 0; d < kDim; ++d) {
            add(i, head * kDim + d, ds * keys[j][d], size * keys[j][d]);
            add(begin + j, key + d, ds * q[d], size * q[d]);
            add(begin + j, value + d, p[j] * dout[d], p[j] * dout[d]);
          }
        }
      }
    }
  }

  static constexpr std::size_t kSequence = 1;  // Not the first: offsets count.
  const NetworkPlan plan_;
  const std::size_t width_;
  const std::vector<float> first_, dlast_;
  KvRun run_;
  base::AlignedArray<std::byte> bytes_;
};
INSTANTIATE_TEST_SUITE_P(Policies, AttentionGradTest,
                         testing::Values(Case{"", 4}, Case{"", 2}, Case{"", 1}, Case{"", 2, 1},
                                         Case{"", 2, 20}, Case{"", 4, 70}, Case{"dtype=f16", 2},
                                         Case{"dtype=bf16", 4}, Case{"dtype=int8", 2},
                                         Case{"dtype=int4", 4}, Case{"k=int8", 1},
                                         Case{"v=int4", 2, 30}, Case{"k=int4,group=16,v=int4", 2},
                                         Case{"k=int4,group=32", 4, 40},
                                         Case{"k=int4,group=64,v=int8", 1},
                                         Case{"k=int4,group=128", 2}));

TEST_P(AttentionGradTest, IsThatOfDoublesOverWhatQueriesRead) {
  const std::vector<float> got = Gradient();
  std::vector<double> expected, magnitude;
  Reference(expected, magnitude);
  // Roundings one after the other: a score and a sum over values (6 each), exp, the softmax's sums
  // over 75 positions by lanes (5 + 4) and products, then chains over at most 4 · 75 queries. A
  // score's error enters its weight multiplied by the score, whose terms are below 6 · 1.5².
  const double roundings = 2 * 6 * (6 * 1.5 * 1.5) + 30 + 4 * kLength;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], roundings * 0x1p-24 * magnitude[i])
        << "row " << i / width_ << " column " << i % width_;
  }
}

TEST_P(AttentionGradTest, HasTheSameBitsOnEveryTarget) {
  std::vector<float> first;
  for (const kernels::Target& target : kernels::AvailableTargets()) {
    kernels::ForceTarget(target);
    const std::vector<float> got = Gradient();
    if (first.empty()) first = got;
    EXPECT_TRUE(kernels::SameBits(first, got)) << target.name;
  }
  kernels::UseBestTarget();
}

}  // namespace
}  // namespace kvasir::training
