// Attention over keys and values of every type, windows and sinks: the bits of the plain reference
// on every target, however queries and heads are taken together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/philox.h"
#include "kernels/attention.h"
#include "kernels/hadamard.h"
#include "kernels/kv_test_cache.h"
#include "kernels/random_test_values.h"
#include "kernels/targets.h"

namespace kvasir::kernels {
namespace {

constexpr std::uint64_t kSeed = 4713;

// Numbers that a seed fixes, one after the other.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::size_t Below(std::size_t n) {
    const auto w = base::Philox4x32(seed_, {count_++, 12, 0, 0});
    return static_cast<std::size_t>(base::UniformDouble(w[0], w[1]) * static_cast<double>(n));
  }
  std::size_t OneOf(const std::vector<std::size_t>& list) { return list[Below(list.size())]; }

 private:
  std::uint64_t seed_;
  std::uint32_t count_ = 0;
};

struct Case {
  KvTestShape shape;
  std::size_t share = 1;  // Query heads of a kv head.
  std::size_t first = 0;
  std::size_t queries = 1;
  std::size_t window = kNoWindow;
  std::size_t sinks = 0;
  bool turned = false;
  bool rotate = false;
  RopePairing pairing = RopePairing::kNeighbours;
  float size = 1;  // Of keys.
  float q_size = 2;
  float v_size = 1;

  std::size_t heads() const { return share * shape.kv_heads; }
  std::string Name() const {
    return shape.Name() + ", " + std::to_string(share) + " heads each, queries " +
           std::to_string(first) + " + " + std::to_string(queries) + ", window " +
           std::to_string(window) + ", sinks " + std::to_string(sinks) + (turned ? " turned" : "") +
           (rotate ? " rotated" : "");
  }
};

// The cache, queries and turns of a case.
class World {
 public:
  explicit World(const Case& c)
      : c_(c),
        width_(c.heads() * c.shape.head_dim),
        cache_(c.shape, c.first + c.queries),
        q_(RandomValues(kSeed, c.queries * width_, 9, c.q_size)) {
    const std::size_t kv_width = c.shape.kv_heads * c.shape.head_dim;
    for (std::size_t t = 0; t < c.first + c.queries; ++t) {
      const auto stream = static_cast<std::uint32_t>(t);
      const auto k = RandomValues(kSeed, kv_width, 100 + stream, c.size);
      const auto v = RandomValues(kSeed, kv_width, 50000 + stream, c.v_size);
      cache_.Store(t, k.data(), v.data());
    }
    cache_.Free(c.first, c.window, c.sinks);
    args_.q = q_.data();
    args_.q_stride = args_.out_stride = width_;
    args_.first_position = c.first;
    args_.heads = c.heads();
    args_.scale = 0.3f;
    args_.window = c.window;
    args_.sinks = c.sinks;
    if (c.turned) TurnSinks();
    args_.kv = cache_.View();
    args_.out = out_.data();
  }

  const AttentionArgs& args() const { return args_; }
  std::vector<float> Expected() const {
    std::vector<float> out(q_.size());
    AttentionArgs args = args_;
    args.out = out.data();
    ReferenceAttention(args, {0, c_.queries}, {0, c_.heads()});
    return out;
  }
  std::vector<float> Got(const std::vector<std::size_t>& query_cuts,
                         const std::vector<std::size_t>& head_cuts) const {
    std::vector<float> out(q_.size(), 9.0f);
    AttentionArgs args = args_;
    args.out = out.data();
    for (std::size_t i = 0; i + 1 < query_cuts.size(); ++i) {
      for (std::size_t j = 0; j + 1 < head_cuts.size(); ++j) {
        Attention(args, {query_cuts[i], query_cuts[i + 1]}, {head_cuts[j], head_cuts[j + 1]});
      }
    }
    return out;
  }

 private:
  void TurnSinks() {
    const std::size_t pairs = std::max<std::size_t>(1, c_.shape.head_dim / 2);
    const auto angle = [](std::size_t i) { return 0.37f * static_cast<float>(i % 1000); };
    turns_.resize(c_.queries * c_.sinks * 2 * pairs);
    for (std::size_t i = 0; i < turns_.size(); i += 2 * pairs) {
      for (std::size_t p = 0; p < pairs; ++p) {
        turns_[i + p] = std::cos(angle(i + p));
        turns_[i + pairs + p] = std::sin(angle(i + p));
      }
    }
    args_.sink_turns = {.turns = turns_.data(),
                        .query_stride = c_.sinks * 2 * pairs,
                        .pairs = pairs,
                        .pairing = c_.pairing,
                        .rotate = c_.rotate};
  }

  Case c_;
  std::size_t width_;
  KvTestCache cache_;
  std::vector<float> q_, turns_, out_;
  AttentionArgs args_;
};

std::vector<std::size_t> Singles(std::size_t n) {
  std::vector<std::size_t> cuts(n + 1);
  for (std::size_t i = 0; i <= n; ++i) cuts[i] = i;
  return cuts;
}
std::vector<std::size_t> Random(std::size_t n, Dice& dice) {
  std::vector<std::size_t> cuts = {0};
  while (cuts.back() < n) cuts.push_back(std::min(n, cuts.back() + 1 + dice.Below(7)));
  return cuts;
}

class TypesOnTarget : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override { ForceTarget(GetParam()); }
  void TearDown() override { UseBestTarget(); }

  static void ExpectReferenceBits(const Case& c, Dice& dice) {
    SCOPED_TRACE(c.Name());
    const World world(c);
    const std::vector<float> expected = world.Expected();
    for (const float x : expected) ASSERT_TRUE(std::isfinite(x));
    const std::vector<std::size_t> queries = {0, c.queries}, heads = {0, c.heads()};
    ASSERT_TRUE(SameBits(expected, world.Got(queries, heads)));
    ASSERT_TRUE(SameBits(expected, world.Got(Singles(c.queries), heads))) << "single queries";
    ASSERT_TRUE(SameBits(expected, world.Got(queries, Singles(c.heads())))) << "single heads";
    ASSERT_TRUE(SameBits(expected, world.Got(Random(c.queries, dice), Random(c.heads(), dice))));
  }
};
INSTANTIATE_TEST_SUITE_P(All, TypesOnTarget, testing::ValuesIn(AvailableTargets()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(TypesOnTarget, EveryPairOfTypesAtEveryWidthHasTheReferenceBits) {
  std::vector<std::size_t> widths = {8, 16, 32, 48, 64, 80, 128};
  for (std::size_t w = 1; w <= 70; w += 2) widths.push_back(w);
  Dice dice(kSeed);
  for (const KvType k_type : kKeyTypes) {
    for (const KvType v_type : kValueTypes) {
      for (const std::size_t head_dim : widths) {
        Case c;
        c.shape = {k_type,
                   v_type,
                   dice.OneOf({1, 2, 4, 5}),
                   head_dim,
                   dice.OneOf({16, 32, 64, 128, 256}),
                   dice.OneOf({16, 32, 64})};
        c.share = dice.OneOf({1, 1, 2, 5});
        c.first = dice.OneOf({0, 3, 61, 90, 130});
        c.queries = dice.OneOf({1, 3, 6});
        if (dice.Below(2) == 0) c.window = dice.OneOf({1, 7, 64, 80});
        ExpectReferenceBits(c, dice);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(TypesOnTarget, WindowsAndSinksHaveTheReferenceBits) {
  Dice dice(kSeed + 1);
  for (const KvType k_type : kKeyTypes) {
    for (const std::size_t window : {1u, 5u, 16u, 63u, 64u, 65u, 100u, 300u}) {
      for (const std::size_t sinks : {0u, 1u, 4u, 16u, 17u, 63u, 70u, 130u}) {
        if (sinks > window) continue;
        Case c;
        c.shape = {k_type,
                   kValueTypes[dice.Below(std::size(kValueTypes))],
                   dice.OneOf({1, 3}),
                   dice.OneOf({8, 20, 33}),
                   dice.OneOf({16, 32, 64, 128, 256}),
                   dice.OneOf({16, 32, 64, 128, 256})};
        c.share = dice.OneOf({1, 2});
        c.first = dice.OneOf({0, 40, 127, 200, 413, 1018, 1030});
        c.queries = 9;
        c.window = window;
        c.sinks = sinks;
        c.turned = sinks > 0 && dice.Below(2) == 0;
        c.rotate = c.turned && dice.Below(2) == 0;
        c.pairing = dice.Below(2) == 0 ? RopePairing::kNeighbours : RopePairing::kHalves;
        ExpectReferenceBits(c, dice);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Prefill over whole groups, and across the borders of groups, blocks, softmax blocks, segments.
TEST_P(TypesOnTarget, LongStepsHaveTheReferenceBits) {
  Dice dice(kSeed + 2);
  for (const KvType k_type : kKeyTypes) {
    for (const std::size_t group : {16u, 32u, 64u, 128u, 256u}) {
      if (k_type != KvType::kInt4Channel && group != 32) continue;
      Case c;
      c.shape = {k_type,
                 kValueTypes[dice.Below(std::size(kValueTypes))],
                 2,
                 24,
                 dice.OneOf({16, 32, 64, 256}),
                 group};
      c.queries = 300;
      ExpectReferenceBits(c, dice);
      if (HasFatalFailure()) return;
      c.first = 1000;
      c.queries = 70;
      ExpectReferenceBits(c, dice);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(TypesOnTarget, RandomShapesHaveTheReferenceBits) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    Case c;
    c.shape.k_type = kKeyTypes[dice.Below(std::size(kKeyTypes))];
    c.shape.v_type = kValueTypes[dice.Below(std::size(kValueTypes))];
    c.shape.kv_heads = 1 + dice.Below(6);
    c.shape.head_dim = 1 + dice.Below(100);
    c.shape.block_tokens = dice.OneOf({16, 32, 64, 128, 256});
    c.shape.group = dice.OneOf({16, 32, 64, 128, 256});
    c.share = 1 + dice.Below(6);
    c.first = dice.Below(dice.OneOf({20, 300, 1200}));
    c.queries = 1 + dice.Below(12);
    if (dice.Below(3) > 0) {
      c.window = 1 + dice.Below(300);
      c.sinks = dice.Below(std::min<std::size_t>(c.window, kMaxSinks) + 1);
    }
    c.turned = c.sinks > 0 && c.shape.head_dim > 1 && dice.Below(2) == 0;
    c.rotate = c.turned && dice.Below(2) == 0;
    ExpectReferenceBits(c, dice);
    if (HasFatalFailure()) return;
  }
}

// Numbers at the ends of f32's range: keys so large that one position takes all the weight, and so
// small that none differs; values that are denormals, and whose sums nearly overflow.
TEST_P(TypesOnTarget, HugeAndTinyNumbersHaveTheReferenceBits) {
  Dice dice(kSeed + 3);
  for (const KvType k_type : kKeyTypes) {
    for (const float size : {1e38f, 1e30f, 1e-30f, 1e-39f, 1e-44f, 0.0f}) {
      Case c;
      c.shape = {k_type, kValueTypes[dice.Below(std::size(kValueTypes))], 2, 5, 32, 32};
      c.first = 70;
      c.queries = 5;
      c.size = size;
      c.q_size = 0.1f;
      c.v_size = std::min(size, 1e36f);
      ExpectReferenceBits(c, dice);
      if (HasFatalFailure()) return;
    }
  }
}

// What a query may see, said once more without attention: the softmax in double precision over the
// numbers that LoadKv gives. The bound follows the formulas of attention.h: a score is a chain of
// head_dim terms and at most four more roundings; a relative error of a weight is twice the largest
// error of a score, and 2 ULP of exp; numerator and denominator are chains over a block, then one
// step of three roundings and two exps for every block.
void ExpectCloseToDoubles(const Case& c) {
  SCOPED_TRACE(c.Name());
  const World world(c);
  const std::vector<float> got = world.Got({0, c.queries}, {0, c.heads()});
  const AttentionArgs& args = world.args();
  const std::size_t width = c.shape.head_dim;
  constexpr double kUnit = 0x1p-24;
  for (std::size_t query = 0; query < c.queries; ++query) {
    const std::size_t t = c.first + query;
    for (std::size_t head = 0; head < c.heads(); ++head) {
      const float* q = args.q + query * args.q_stride + head * width;
      std::vector<std::vector<float>> keys, values;
      std::vector<double> scores;
      double score_error = 0;
      for (std::size_t j = 0; j <= t; ++j) {
        if (j >= c.sinks && j < FirstVisible(t, c.window)) continue;
        std::vector<float> k(width), v(width);
        LoadKv(args.kv, j, head / c.share, k.data(), v.data(), t);
        double score = 0, terms = 0, largest = 0;
        for (const float x : k) largest = std::max(largest, std::abs(double{x}));
        for (std::size_t d = 0; d < width; ++d) {
          score += double{q[d]} * k[d];
          terms += std::abs(double{q[d]});
        }
        // scale · n and the minimum are each at most twice the largest key (int4 per channel: of
        // the channels that is `size`).
        const double reach = 4 * std::max<double>(largest, c.size);
        score_error = std::max(score_error,
                               static_cast<double>(width + 6) * kUnit * terms * reach * args.scale);
        scores.push_back(score * args.scale);
        keys.push_back(k);
        values.push_back(v);
      }
      const double max = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& s : scores) sum += s = std::exp(s - max);
      const double blocks = static_cast<double>(t / kSoftmaxBlock + 2);
      const double weight_error = std::expm1(2 * score_error) + 4 * kUnit;
      const double chain_error = (kSoftmaxBlock + 4 + blocks * 9) * kUnit;
      for (std::size_t d = 0; d < width; ++d) {
        double exact = 0;
        for (std::size_t j = 0; j < scores.size(); ++j) exact += scores[j] / sum * values[j][d];
        // Values are within ±1, and their scaled numbers and minima within ±3.
        const double bound = 2 * 4 * (weight_error + chain_error);
        ASSERT_NEAR(got[query * args.out_stride + head * width + d], exact, bound) << t << " " << d;
      }
    }
  }
}

TEST_P(TypesOnTarget, IsSoftmaxInDoublePrecisionOfTheNumbersRead) {
  for (const KvType k_type : kKeyTypes) {
    for (const KvType v_type : kValueTypes) {
      ExpectCloseToDoubles({.shape = {k_type, v_type, 2, 32, 16, 32}, .first = 150, .queries = 6});
      ExpectCloseToDoubles({.shape = {k_type, v_type, 1, 19, 64, 64},
                            .share = 2,
                            .first = 1100,
                            .queries = 2,
                            .window = 90,
                            .sinks = 5});
    }
  }
}

// The weights are what the kernel makes of unit vectors, as many positions at once as a value is
// wide.
TEST_P(TypesOnTarget, WeightsAreTheSumsOfUnitVectors) {
  for (const KvType k_type : kKeyTypes) {
    for (const std::size_t sinks : {0u, 6u}) {
      const Case c = {.shape = {k_type, KvType::kF32, 2, 20, 32, 32},
                      .share = 2,
                      .first = 1010,
                      .queries = 16,
                      .window = sinks == 0 ? kNoWindow : 90,
                      .sinks = sinks,
                      .turned = sinks > 0};
      const World world(c);
      const AttentionArgs& args = world.args();
      const std::size_t length = c.first + c.queries;
      const std::size_t width = c.shape.head_dim;
      std::vector<float> weights(c.queries * c.heads() * length);
      for (std::size_t row = 0; row < c.queries * c.heads(); ++row) {
        ReferenceAttentionWeights(args, row / c.heads(), row % c.heads(), &weights[row * length]);
      }
      for (std::size_t from = 0; from < length; from += width) {
        for (std::size_t t = 0; t < length; ++t) {
          if (args.kv.blocks[t / c.shape.block_tokens] == nullptr) continue;
          for (std::size_t head = 0; head < c.shape.kv_heads; ++head) {
            auto* v = reinterpret_cast<float*>(VTile(args.kv, t, head)) + t % kLanes * width;
            std::fill_n(v, width, 0.0f);
            if (t >= from && t < from + width) v[t - from] = 1;
          }
        }
        const std::vector<float> got = world.Got({0, c.queries}, Singles(c.heads()));
        for (std::size_t row = 0; row < c.queries * c.heads(); ++row) {
          const std::size_t seen = std::min(width, length - from);
          ASSERT_EQ(std::memcmp(&got[row * width], &weights[row * length + from], seen * 4), 0)
              << c.Name() << ", row " << row << " from " << from;
        }
      }
    }
  }
}

// A turned sink is the same as a key that was turned before it was stored.
TEST_P(TypesOnTarget, TurnedSinksAreKeysStoredTurned) {
  for (const bool rotate : {false, true}) {
    const Case c = {.shape = {KvType::kF32, KvType::kInt8, 2, 24, 32, 32},
                    .share = 2,
                    .first = 300,
                    .queries = 1,
                    .window = 40,
                    .sinks = 21,
                    .turned = true,
                    .rotate = rotate};
    const World world(c);
    const std::vector<float> turned = world.Got({0, 1}, {0, 4});
    AttentionArgs args = world.args();
    const SinkTurns turns = args.sink_turns;
    for (std::size_t j = 0; j < c.sinks; ++j) {
      for (std::size_t head = 0; head < 2; ++head) {
        std::vector<float> key(24);
        LoadKey(args.kv, j, head, 300, key.data());
        Rope({.turn = turns.turns + j * 2 * turns.pairs,
              .pairs = turns.pairs,
              .pairing = turns.pairing,
              .heads = 1,
              .head_stride = 24,
              .x = key.data()});
        if (rotate) HadamardRotate(key.data(), 1, 24);
        auto* tile = reinterpret_cast<float*>(KTile(args.kv, j, head));
        for (std::size_t d = 0; d < 24; ++d) tile[d * kLanes + j % kLanes] = key[d];
      }
    }
    std::vector<float> out(turned.size());
    args.out = out.data();
    args.sink_turns = {};
    Attention(args, {0, 1}, {0, 4});
    EXPECT_TRUE(SameBits(turned, out));
  }
}

// Sinks that the window holds anyway change nothing.
TEST_P(TypesOnTarget, SinksWithinTheWindowChangeNothing) {
  for (const KvType type : kValueTypes) {
    Case c = {.shape = {type, type, 2, 16, 16, 32}, .first = 60, .queries = 20, .window = 90};
    const std::vector<float> without = World(c).Got({0, 20}, {0, 2});
    c.sinks = 30;
    EXPECT_TRUE(SameBits(without, World(c).Got({0, 20}, {0, 2}))) << c.Name();
  }
}

}  // namespace
}  // namespace kvasir::kernels
