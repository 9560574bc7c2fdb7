// Every kernel on every target this machine has: the bits of the plain reference.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/philox.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/norm.h"
#include "kernels/random_test_values.h"
#include "kernels/scalar_math.h"
#include "kernels/softmax.h"
#include "kernels/targets.h"

namespace kvasir::kernels {
namespace {

constexpr std::uint64_t kSeed = 4711;

std::vector<float> Random(std::size_t n, std::uint32_t stream, float scale = 1.0f) {
  return RandomValues(kSeed, n, stream, scale);
}

class OnTarget : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override { ForceTarget(GetParam()); }
  void TearDown() override { UseBestTarget(); }
};
INSTANTIATE_TEST_SUITE_P(All, OnTarget, testing::ValuesIn(AvailableTargets()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(Targets, ThisProcessorHasOne) {
  EXPECT_TRUE(CheckProcessor().has_value());
  EXPECT_FALSE(AvailableTargets().empty());
}

TEST_P(OnTarget, MatmulHasTheReferenceBits) {
  EXPECT_EQ(CurrentTargetName(), GetParam().name);
  for (std::size_t rows : {1u, 2u, 3u, 5u, 7u, 12u, 13u, 31u}) {
    for (std::size_t n : {1u, 15u, 16u, 17u, 48u, 100u, 211u}) {
      for (std::size_t k : {1u, 3u, 64u, 513u, 700u}) {
        const auto a = Random(rows * k, 1), w = Random(n * k, 2), bias = Random(n, 3);
        const auto residual = Random(rows * n, 4);
        const PackedMatrix packed = PackWeights(w.data(), n, k);
        MatmulArgs args;
        args.a = a.data();
        args.a_row_stride = k;
        args.w = &packed;
        args.bias = bias.data();
        args.residual = residual.data();
        args.out_stride = n;
        std::vector<float> expected(rows * n), got(rows * n);
        args.out = expected.data();
        ReferenceMatmul(args, rows);
        args.out = got.data();
        Matmul(args, {0, rows}, {0, packed.panel_count()});
        ASSERT_TRUE(SameBits(expected, got)) << rows << "x" << n << "x" << k;
        // The residual may lie in out itself.
        std::copy(residual.begin(), residual.end(), got.begin());
        args.residual = got.data();
        Matmul(args, {0, rows}, {0, packed.panel_count()});
        ASSERT_TRUE(SameBits(expected, got)) << rows << "x" << n << "x" << k;
        args.residual = residual.data();
        // In pieces, carried on, and with the input transposed: the same.
        if (rows < 3 || n < 32) continue;
        std::vector<float> transposed(rows * k);
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t i = 0; i < k; ++i) transposed[i * rows + r] = a[r * k + i];
        }
        args.a = transposed.data();
        args.a_row_stride = 1;
        args.a_k_stride = rows;
        std::fill(got.begin(), got.end(), 9.0f);
        Matmul(args, {0, 1}, {0, packed.panel_count()});
        Matmul(args, {1, rows}, {0, 1});
        Matmul(args, {1, rows}, {1, packed.panel_count()});
        ASSERT_TRUE(SameBits(expected, got)) << rows << "x" << n << "x" << k;
        args.accumulate = true;
        args.residual = nullptr;
        args.out = expected.data();
        ReferenceMatmul(args, rows);
        args.out = got.data();
        Matmul(args, {0, rows}, {0, packed.panel_count()});
        ASSERT_TRUE(SameBits(expected, got));
      }
    }
  }
}

TEST_P(OnTarget, LayerNormHasTheReferenceBits) {
  for (std::size_t n : {1u, 5u, 16u, 23u, 64u, 128u, 130u}) {
    const auto x = Random(n, 5, 3.0f), gain = Random(n, 6), bias = Random(n, 7);
    std::vector<float> expected(n), got(n);
    RowStats a, b;
    ReferenceLayerNorm(x.data(), gain.data(), bias.data(), n, 1e-5f, expected.data(), &a);
    LayerNorm(x.data(), gain.data(), bias.data(), n, 1e-5f, got.data(), &b);
    ASSERT_TRUE(SameBits(expected, got)) << n;
    EXPECT_EQ(a.mean, b.mean);
    EXPECT_EQ(a.inverse_deviation, b.inverse_deviation);
  }
}

TEST_P(OnTarget, RmsNormHasTheReferenceBits) {
  for (std::size_t n : {1u, 5u, 16u, 23u, 64u, 128u, 130u}) {
    const auto x = Random(n, 5, 3.0f), gain = Random(n, 6);
    std::vector<float> expected(n), got = x;
    ReferenceRmsNorm(x.data(), gain.data(), n, 1e-5f, expected.data());
    RmsNorm(got.data(), gain.data(), n, 1e-5f, got.data());  // In place.
    ASSERT_TRUE(SameBits(expected, got)) << n;
    double squares = 0;
    for (float v : x) squares += double{v} * v;
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    // The sum: n/16 + 4 roundings, halved by the root; then 5 of its own and 2 products.
    const double bound = (static_cast<double>(n) / 32 + 9) * 0x1p-24;
    for (std::size_t i = 0; i < n; ++i) {
      const double exact = x[i] * inverse * gain[i];
      EXPECT_NEAR(got[i], exact, bound * std::abs(exact));
    }
  }
}

TEST_P(OnTarget, SwiGluHasTheScalarBits) {
  std::vector<float> gate = Random(1003, 8, 30.0f);
  gate.insert(gate.end(), {0.0f, -0.0f, 1e-30f, -87.3f, 88.0f, -100.0f, 100.0f});
  const auto up = Random(gate.size(), 11, 3.0f);
  for (std::size_t n : {std::size_t{1}, std::size_t{15}, gate.size()}) {
    std::vector<float> got(gate.begin(), gate.begin() + static_cast<std::ptrdiff_t>(n));
    SwiGlu(got.data(), up.data(), n, got.data());
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(got[i], SiluF32(gate[i]) * up[i]) << gate[i];
      const double silu = gate[i] / (1 + std::exp(-double{gate[i]}));
      if (gate[i] > -87) {  // exp errs by 1.1 ULP, the sum and the quotient by a half each.
        EXPECT_NEAR(SiluF32(gate[i]), silu, 2.6 * 0x1p-23 * std::abs(silu)) << gate[i];
      } else {
        EXPECT_NEAR(SiluF32(gate[i]), 0, 1e-35);
      }
    }
  }
}

TEST_P(OnTarget, GeluAndExpHaveTheScalarBits) {
  std::vector<float> x = Random(1003, 8, 12.0f);
  x.insert(x.end(), {0.0f, -0.0f, 1e-30f, -87.3f, 88.0f, -100.0f, 100.0f});
  std::vector<float> gelu(x.size()), weights(x.size());
  Gelu(x.data(), x.size(), gelu.data());
  SoftmaxWeights(x.data(), x.size(), 0.0f, 1.0f, weights.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(gelu[i], GeluF32(x[i])) << x[i];
    ASSERT_EQ(weights[i], ExpF32(x[i])) << x[i];
    const double u = 0.7978845608028654 * (x[i] + 0.044715 * std::pow(double{x[i]}, 3));
    EXPECT_NEAR(gelu[i], 0.5 * x[i] * (1 + std::tanh(u)), 2e-6 * std::max(1.0f, std::abs(x[i])));
  }
}

TEST_P(OnTarget, AttentionHasTheReferenceBits) {
  struct Case {
    std::size_t heads, kv_heads, head_dim, block_tokens, first, queries, window = kNoWindow;
  };
  for (const Case& c :
       {Case{1, 1, 8, 16, 0, 5}, Case{4, 4, 32, 16, 0, 70}, Case{4, 2, 20, 32, 61, 9},
        Case{2, 1, 64, 64, 200, 6}, Case{2, 2, 16, 256, 1020, 9}, Case{1, 1, 33, 16, 2100, 5},
        Case{7, 1, 32, 16, 70, 3}, Case{6, 2, 16, 16, 1500, 7}, Case{1, 1, 16, 16, 0, 70, 1},
        Case{4, 2, 20, 16, 0, 150, 7}, Case{2, 1, 32, 32, 2040, 40, 64},
        Case{3, 1, 48, 16, 1100, 70, 65}, Case{2, 2, 16, 64, 2000, 9, 1000},
        Case{7, 7, 20, 32, 1050, 6}, Case{7, 7, 32, 16, 1050, 6, 300}}) {
    const std::size_t length = c.first + c.queries;
    const std::size_t width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
    const std::size_t blocks = (length + c.block_tokens - 1) / c.block_tokens;
    const std::size_t half_floats = c.block_tokens * kv_width;
    // Unused slots hold NaN: if one reached a result, it would show.
    base::AlignedArray<float> storage(blocks * half_floats * 2);
    std::fill_n(storage.data(), storage.size(), NAN);
    std::vector<std::byte*> table(blocks);
    for (std::size_t b = 0; b < blocks; ++b) {  // Laid out backwards: placement must not matter.
      table[b] = reinterpret_cast<std::byte*>(storage.data() + (blocks - 1 - b) * half_floats * 2);
    }
    KvView view{table.data(),
                0,
                half_floats * 4,
                static_cast<std::uint32_t>(c.block_tokens),
                static_cast<std::uint32_t>(c.kv_heads),
                static_cast<std::uint32_t>(c.head_dim)};
    // Blocks before the window are not there; what else no query sees holds NaN.
    const std::size_t first_seen = FirstVisible(c.first, c.window);
    std::fill_n(table.begin(), first_seen / c.block_tokens, nullptr);
    for (std::size_t t = first_seen; t < length; ++t) {
      const auto k = Random(kv_width, 100 + static_cast<std::uint32_t>(t), 2.0f);
      const auto v = Random(kv_width, 5000 + static_cast<std::uint32_t>(t));
      StoreKv(view, t, k.data(), v.data());
    }
    const auto q = Random(c.queries * width, 9, 2.0f);
    AttentionArgs args;
    args.q = q.data();
    args.q_stride = args.out_stride = width;
    args.first_position = c.first;
    args.heads = c.heads;
    args.scale = 0.3f;
    args.window = c.window;
    args.kv = view;
    std::vector<float> expected(q.size()), got(q.size());
    args.out = expected.data();
    ReferenceAttention(args, {0, c.queries}, {0, c.heads});
    args.out = got.data();
    Attention(args, {0, c.queries}, {0, c.heads});
    ASSERT_TRUE(SameBits(expected, got)) << c.head_dim << " at " << c.first;
    std::fill(got.begin(), got.end(), 0.0f);
    for (std::size_t i = 0; i < c.queries; ++i) Attention(args, {i, i + 1}, {0, c.heads});
    ASSERT_TRUE(SameBits(expected, got)) << "one query at a time";
    std::fill(got.begin(), got.end(), 0.0f);
    for (std::size_t h = 0; h < c.heads; ++h) Attention(args, {0, c.queries}, {h, h + 1});
    ASSERT_TRUE(SameBits(expected, got)) << "one head at a time";
  }
}

TEST_P(OnTarget, CrossEntropyMatchesDoubles) {
  for (std::size_t n : {1u, 2u, 17u, 257u, 6915u}) {
    auto x = Random(n, 10, 8.0f);
    const auto target = static_cast<std::uint32_t>(n / 2);
    double sum = 0;
    for (float v : x) sum += std::exp(double{v});
    const double expected = std::log(sum) - x[target];
    const double bound =
        1e-6 * (1 + static_cast<double>(n) / 16 * 0.06);  // n/16 f32 additions a lane
    EXPECT_NEAR(CrossEntropy(x.data(), n, target), expected, bound);
    std::vector<float> gradient = x;
    EXPECT_EQ(CrossEntropyGrad(gradient.data(), n, target, 0.5f),
              CrossEntropy(x.data(), n, target));
    for (std::size_t i = 0; i < n; ++i) {
      const double p = std::exp(double{x[i]}) / sum - (i == target);
      EXPECT_NEAR(gradient[i], 0.5 * p, 1e-5);
    }
    EXPECT_TRUE(AllFinite(x.data(), n));
    x[n - 1] = NAN;
    EXPECT_FALSE(AllFinite(x.data(), n));
    x[n - 1] = -INFINITY;
    EXPECT_FALSE(AllFinite(x.data(), n));
  }
}

TEST(ScalarMath, WithinItsStatedErrors) {
  double worst32 = 0, worst64 = 0, worst_log = 0, worst_cos = 0;
  for (std::uint32_t i = 0; i < 200000; ++i) {
    const auto w = base::Philox4x32(kSeed, {i, 77, 0, 0});
    const double u = base::UniformDouble(w[0], w[1]);
    const auto x = static_cast<float>(-87.3 + u * 175.9);
    const double e = std::exp(double{x});
    const double ulp = std::ldexp(1.0, std::ilogb(e) - 23);
    worst32 = std::max(worst32, std::abs(ExpF32(x) - e) / ulp);
    const double y = (u - 0.5) * 1400;
    const long double el = std::exp(static_cast<long double>(y));
    worst64 = std::max(worst64, static_cast<double>(std::abs(ExpF64(y) - el) /
                                                    std::ldexp(1.0L, std::ilogb(el) - 52)));
    const double z = ExpF64(y);
    const long double l = std::log(static_cast<long double>(z));
    worst_log = std::max(worst_log, static_cast<double>(std::abs(LogF64(z) - l) /
                                                        std::ldexp(1.0L, std::ilogb(l) - 52)));
    worst_cos = std::max(worst_cos, std::abs(CosF64(u * 6.28) - std::cos(u * 6.28)));
  }
  EXPECT_LE(worst32, 1.1);
  EXPECT_LE(worst64, 1.0);
  EXPECT_LE(worst_log, 2.0);
  EXPECT_LE(worst_cos, 1e-15);
  EXPECT_EQ(ExpF32(-87.4f), 0.0f);
  EXPECT_EQ(ExpF32(0.0f), 1.0f);
  EXPECT_EQ(ExpF32(89.0f), INFINITY);
  EXPECT_TRUE(std::isnan(ExpF32(NAN)));
  EXPECT_EQ(LogF64(1.0), 0.0);
  EXPECT_EQ(LogF64(0.0), -INFINITY);
}

TEST(ThreadedMatmul, SharesGiveTheSameBits) {
  const std::size_t rows = 37, n = 211, k = 70;
  const auto a = Random(rows * k, 1), w = Random(n * k, 2);
  const PackedMatrix packed = PackWeights(w.data(), n, k);
  std::vector<float> expected(rows * n), got(rows * n);
  MatmulArgs args;
  args.a = a.data();
  args.a_row_stride = k;
  args.w = &packed;
  args.out_stride = n;
  args.out = expected.data();
  ReferenceMatmul(args, rows);
  for (std::size_t threads : {1u, 2u, 3u, 8u}) {
    base::ThreadTeam team(threads);
    std::fill(got.begin(), got.end(), 0.0f);
    args.out = got.data();
    team.Run([&](base::Member& member) { MatmulShare(args, rows, member); });
    EXPECT_TRUE(SameBits(expected, got)) << threads;
  }
}

}  // namespace
}  // namespace kvasir::kernels
