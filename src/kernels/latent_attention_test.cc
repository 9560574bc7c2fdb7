// Latent attention on every target: the reference's bits, those of multi-query attention over
// copied rows, and near plain attention over expanded keys and values.
#include "kernels/latent_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/aligned.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/random_test_values.h"
#include "kernels/targets.h"

namespace kvasir::kernels {
namespace {

constexpr std::uint64_t kSeed = 815;  // Of every number below; nothing else is random.

std::vector<float> Random(std::size_t n, std::uint32_t stream, float scale = 1.0f) {
  return RandomValues(kSeed, n, stream, scale);
}

// Latents of one sequence in blocks that lie backwards in memory. Unused slots hold NaN: if one
// reached a result, it would show.
class Latents {
 public:
  Latents(std::size_t length, std::size_t block_tokens, std::size_t latent_dim,
          std::size_t rope_dim) {
    const std::size_t blocks = (length + block_tokens - 1) / block_tokens;
    const std::size_t block_floats = block_tokens * (latent_dim + rope_dim);
    storage_ = base::AlignedArray<float>(blocks * block_floats);
    std::fill_n(storage_.data(), storage_.size(), NAN);
    for (std::size_t b = 0; b < blocks; ++b) {
      table_.push_back(
          reinterpret_cast<std::byte*>(storage_.data() + (blocks - 1 - b) * block_floats));
    }
    view_ = {.blocks = table_.data(),
             .block_tokens = static_cast<std::uint32_t>(block_tokens),
             .latent_dim = static_cast<std::uint32_t>(latent_dim),
             .rope_dim = static_cast<std::uint32_t>(rope_dim)};
    for (std::size_t t = 0; t < length; ++t) {
      const auto row = Random(view_.width(), 100 + static_cast<std::uint32_t>(t), 1.5f);
      StoreLatent(view_, t, row.data(), row.data() + latent_dim);
    }
  }
  const LatentView& view() const { return view_; }

 private:
  base::AlignedArray<float> storage_;
  std::vector<std::byte*> table_;
  LatentView view_;
};

class LatentOnTarget : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override { ForceTarget(GetParam()); }
  void TearDown() override { UseBestTarget(); }
};
INSTANTIATE_TEST_SUITE_P(All, LatentOnTarget, testing::ValuesIn(AvailableTargets()),
                         [](const auto& param_info) { return param_info.param.name; });

struct Case {
  std::size_t heads, latent_dim, rope_dim, block_tokens, first, queries;
};
// Head counts around 16, widths that are no multiple of anything, ends of tiles, blocks, segments.
const Case kCases[] = {
    {1, 1, 0, 16, 0, 3},        {1, 5, 2, 16, 0, 70},      {3, 24, 8, 48, 59, 9},
    {15, 33, 6, 32, 61, 4},     {16, 16, 16, 64, 63, 3},   {17, 20, 4, 256, 1020, 9},
    {40, 31, 1, 16, 126, 3},    {2, 32, 8, 128, 2046, 4},  {16, 512, 64, 16, 0, 2},
    {18, 512, 64, 32, 1086, 2}, {4, 511, 63, 256, 200, 2},
};

LatentAttentionArgs ArgsFor(const Case& c, const LatentView& view, const std::vector<float>& q) {
  LatentAttentionArgs args;
  args.q = q.data();
  args.q_stride = c.heads * view.width();
  args.first_position = c.first;
  args.heads = c.heads;
  args.scale = 0.11f;
  args.latents = view;
  args.out_stride = c.heads * c.latent_dim;
  return args;
}

TEST_P(LatentOnTarget, HasTheReferenceBits) {
  for (const Case& c : kCases) {
    const Latents latents(c.first + c.queries, c.block_tokens, c.latent_dim, c.rope_dim);
    const auto q = Random(c.queries * c.heads * latents.view().width(), 9, 2.0f);
    LatentAttentionArgs args = ArgsFor(c, latents.view(), q);
    std::vector<float> expected(c.queries * args.out_stride, NAN), got = expected;
    args.out = expected.data();
    ReferenceLatentAttention(args, {0, c.queries}, {0, c.heads});
    args.out = got.data();
    LatentAttention(args, {0, c.queries}, {0, c.heads});
    ASSERT_TRUE(SameBits(expected, got)) << c.heads << " heads of " << c.latent_dim;
    // One query and some heads at a time: other lanes, the same bits.
    std::fill(got.begin(), got.end(), NAN);
    for (std::size_t i = 0; i < c.queries; ++i) {
      for (std::size_t head = 0; head < c.heads; head += 7) {
        LatentAttention(args, {i, i + 1}, {head, std::min(c.heads, head + 7)});
      }
    }
    ASSERT_TRUE(SameBits(expected, got)) << "in pieces";
  }
}

// A query's result is the same whether or not later positions are stored.
TEST_P(LatentOnTarget, LaterPositionsAndBlockSizesChangeNothing) {
  const Case c = {5, 40, 8, 16, 70, 3};
  const auto q = Random(c.queries * c.heads * 48, 9, 2.0f);
  std::vector<float> expected;
  for (const std::size_t block_tokens : {16u, 32u, 80u, 256u}) {
    for (const std::size_t later : {0u, 1u, 30u}) {
      const Latents latents(c.first + c.queries + later, block_tokens, c.latent_dim, c.rope_dim);
      LatentAttentionArgs args = ArgsFor(c, latents.view(), q);
      std::vector<float> got(c.queries * args.out_stride);
      args.out = got.data();
      LatentAttention(args, {0, c.queries}, {0, c.heads});
      if (expected.empty()) expected = got;
      ASSERT_TRUE(SameBits(expected, got)) << block_tokens << " " << later;
    }
  }
}

// Absorbed latent attention is multi-query attention: one key head, whose values are the keys'
// first latent_dim elements. Another kernel, other lanes, the same chains.
TEST_P(LatentOnTarget, HasTheBitsOfMultiQueryAttentionOverCopiedRows) {
  const Case c = {19, 40, 8, 32, 1000, 30};
  const std::size_t length = c.first + c.queries, width = c.latent_dim + c.rope_dim;
  const Latents latents(length, c.block_tokens, c.latent_dim, c.rope_dim);
  const auto q = Random(c.queries * c.heads * width, 9, 2.0f);
  LatentAttentionArgs args = ArgsFor(c, latents.view(), q);
  std::vector<float> got(c.queries * args.out_stride);
  args.out = got.data();
  LatentAttention(args, {0, c.queries}, {0, c.heads});

  const std::size_t tokens = (length + 255) / 256 * 256;
  base::AlignedArray<float> storage(tokens * width * 2);
  std::vector<std::byte*> table;
  for (std::size_t b = 0; b < tokens / 256; ++b) {
    table.push_back(reinterpret_cast<std::byte*>(storage.data() + b * 256 * width * 2));
  }
  AttentionArgs plain;
  plain.kv.blocks = table.data();
  plain.kv.v_offset = 256 * width * sizeof(float);
  plain.kv.block_tokens = 256;
  plain.kv.kv_heads = 1;
  plain.kv.head_dim = static_cast<std::uint32_t>(width);
  for (std::size_t t = 0; t < length; ++t) {
    StoreKv(plain.kv, t, latents.view().Row(t), latents.view().Row(t));
  }
  std::vector<float> copied(c.queries * c.heads * width);
  plain.q = q.data();
  plain.q_stride = plain.out_stride = c.heads * width;
  plain.first_position = c.first;
  plain.heads = c.heads;
  plain.scale = args.scale;
  plain.out = copied.data();
  Attention(plain, {0, c.queries}, {0, c.heads});
  for (std::size_t i = 0; i < c.queries * c.heads; ++i) {
    ASSERT_EQ(0, std::memcmp(&got[i * c.latent_dim], &copied[i * width], c.latent_dim * 4)) << i;
    const std::size_t query = i / c.heads;
    std::vector<float> weights(c.first + query + 1, 9.0f), expected(weights);
    ReferenceLatentAttentionWeights(args, query, i % c.heads, weights.data());
    ReferenceAttentionWeights(plain, query, i % c.heads, expected.data());
    ASSERT_TRUE(SameBits(expected, weights)) << i;
  }
}

// A layer's projections, as in the paper.
struct Layer {
  std::size_t heads, nope, rope, latent, value;
  std::vector<float> up_k;  // [heads][nope][latent]
  std::vector<float> up_v;  // [heads][value][latent]
};

// The absorbed way, in f32, as a model computes it: out [heads][value] for the newest position.
std::vector<float> Absorbed(const Layer& layer, const LatentView& view, std::size_t position,
                            const std::vector<float>& q, float scale) {
  const std::size_t width = layer.latent + layer.rope, query = layer.nope + layer.rope;
  std::vector<float> wide(layer.heads * width), summed(layer.heads * layer.latent);
  std::vector<float> out(layer.heads * layer.value);
  for (std::size_t h = 0; h < layer.heads; ++h) {
    PackedMatrix transposed(layer.latent, layer.nope);
    PackPanels({layer.up_k.data() + h * layer.nope * layer.latent, 1, layer.latent}, transposed,
               {0, transposed.panel_count()});
    MatmulArgs product;
    product.a = q.data() + h * query;
    product.a_row_stride = query;
    product.w = &transposed;
    product.out = wide.data() + h * width;
    product.out_stride = width;
    ReferenceMatmul(product, 1);
    std::copy_n(q.data() + h * query + layer.nope, layer.rope, &wide[h * width + layer.latent]);
  }
  LatentAttentionArgs args;
  args.q = wide.data();
  args.q_stride = wide.size();
  args.first_position = position;
  args.heads = layer.heads;
  args.scale = scale;
  args.latents = view;
  args.out = summed.data();
  args.out_stride = summed.size();
  LatentAttention(args, {0, 1}, {0, layer.heads});
  for (std::size_t h = 0; h < layer.heads; ++h) {
    const PackedMatrix up =
        PackWeights(layer.up_v.data() + h * layer.value * layer.latent, layer.value, layer.latent);
    MatmulArgs product;
    product.a = &summed[h * layer.latent];
    product.a_row_stride = layer.latent;
    product.w = &up;
    product.out = &out[h * layer.value];
    product.out_stride = layer.value;
    ReferenceMatmul(product, 1);
  }
  return out;
}

// Plain attention of one head in double precision, and how far the absorbed one may be off.
//
// With u = 2^-24 and first order in u: absorbing W_uk is a chain of `nope` roundings, the score one
// of `latent + rope`, and two for the scale, so a score is off by at most (nope + latent + rope +
// 2) u A, A = scale Σ |q| |W_uk| |c| + scale Σ |q_rope| |k_rope|. The difference to the maximum, at
// most 2 A, is rounded once: 2 u A more. exp: 1.1 ULP, 3 u. Numerator and denominator both, hence
// twice; what the maximum itself is off by cancels. Sums over positions: chains of at most 64, then
// at most 16 merges in a segment and as many as there are segments, 5 roundings each. Last, a chain
// of `latent` through W_uv.
struct Expected {
  std::vector<double> out, bound;  // [value]
};
Expected PlainHead(const Layer& layer, const LatentView& view, std::size_t position,
                   const std::vector<float>& q, std::size_t head, double scale) {
  const float* up_k = layer.up_k.data() + head * layer.nope * layer.latent;
  const float* up_v = layer.up_v.data() + head * layer.value * layer.latent;
  const float* query = q.data() + head * (layer.nope + layer.rope);
  std::vector<double> score(position + 1);
  double largest_terms = 0, max = -HUGE_VAL;
  for (std::size_t j = 0; j <= position; ++j) {
    const float* row = view.Row(j);
    double terms = 0;
    for (std::size_t n = 0; n < layer.nope; ++n) {
      double key = 0, key_terms = 0;
      for (std::size_t d = 0; d < layer.latent; ++d) {
        const double product = double{up_k[n * layer.latent + d]} * row[d];
        key += product;
        key_terms += std::abs(product);
      }
      score[j] += query[n] * key;
      terms += std::abs(query[n]) * key_terms;
    }
    for (std::size_t r = 0; r < layer.rope; ++r) {
      const double product = double{query[layer.nope + r]} * row[layer.latent + r];
      score[j] += product;
      terms += std::abs(product);
    }
    score[j] *= scale;
    largest_terms = std::max(largest_terms, terms * scale);
    max = std::max(max, score[j]);
  }
  double sum = 0;
  for (double& s : score) sum += s = std::exp(s - max);
  constexpr double kU = 0x1p-24;
  const auto width = static_cast<double>(layer.latent + layer.rope);
  const double weight_share =
      2 * ((static_cast<double>(layer.nope) + width + 2 + 2) * kU * largest_terms + 3 * kU);
  const double merges = 5 * (16 + static_cast<double>(position / 1024) + 1);
  const double sums = (2 * (64 + merges) + 1 + static_cast<double>(layer.latent)) * kU;
  Expected expected = {std::vector<double>(layer.value), std::vector<double>(layer.value)};
  for (std::size_t e = 0; e < layer.value; ++e) {
    for (std::size_t j = 0; j <= position; ++j) {
      double value = 0, value_terms = 0;
      for (std::size_t d = 0; d < layer.latent; ++d) {
        const double product = double{up_v[e * layer.latent + d]} * view.Row(j)[d];
        value += product;
        value_terms += std::abs(product);
      }
      expected.out[e] += score[j] / sum * value;
      expected.bound[e] += score[j] / sum * value_terms;
    }
    expected.bound[e] *= weight_share + sums;
  }
  return expected;
}

TEST_P(LatentOnTarget, IsPlainAttentionOverExpandedKeysAndValues) {
  Layer layer = {
      .heads = 5, .nope = 24, .rope = 8, .latent = 32, .value = 20, .up_k = {}, .up_v = {}};
  layer.up_k = Random(layer.heads * layer.nope * layer.latent, 1, 0.3f);
  layer.up_v = Random(layer.heads * layer.value * layer.latent, 2, 0.3f);
  const auto q = Random(layer.heads * (layer.nope + layer.rope), 3);
  const float scale = 1.0f / std::sqrt(32.0f);
  const Latents latents(1100, 64, layer.latent, layer.rope);
  for (const std::size_t position : {0u, 1u, 63u, 64u, 300u, 1099u}) {
    const auto got = Absorbed(layer, latents.view(), position, q, scale);
    const auto other = Absorbed(layer, latents.view(), position, q, scale * 1.01f);
    double seen = 0;
    for (std::size_t h = 0; h < layer.heads; ++h) {
      const Expected expected = PlainHead(layer, latents.view(), position, q, h, scale);
      for (std::size_t e = 0; e < layer.value; ++e) {
        ASSERT_NEAR(got[h * layer.value + e], expected.out[e], expected.bound[e])
            << "position " << position << " head " << h;
        seen = std::max(seen,
                        std::abs(other[h * layer.value + e] - expected.out[e]) / expected.bound[e]);
      }
    }
    // The bound is narrow enough to see a scale that is a hundredth off.
    if (position > 0) {
      EXPECT_GT(seen, 1.0) << position;
    }
  }
}

TEST(LatentAttentionDeathTest, WidthsBeyondTheLimits) {
  const auto attend = [](std::uint32_t latent_dim, std::uint32_t rope_dim) {
    LatentAttentionArgs args;
    args.heads = 1;
    args.latents.latent_dim = latent_dim;
    args.latents.rope_dim = rope_dim;
    LatentAttention(args, {0, 1}, {0, 1});
  };
  EXPECT_DEATH(attend(0, 4), "latent_dim >= 1");
  EXPECT_DEATH(attend(513, 4), "latent_dim <= kMaxLatentDim");
  EXPECT_DEATH(attend(4, 65), "rope_dim <= kMaxLatentRopeDim");
}

}  // namespace
}  // namespace kvasir::kernels
