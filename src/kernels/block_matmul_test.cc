// Products with rounded weights on every target: the bits of R6, computed from a file's blocks.
#include "kernels/block_matmul.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/random_test_values.h"
#include "kernels/targets.h"
#include "tensor/convert.h"
#include "tensor/half.h"

namespace kvasir::kernels {
namespace {

using tensor::DType;

constexpr std::uint64_t kSeed = 4712;

std::vector<float> Random(std::size_t n, std::uint32_t stream, float scale = 1.0f) {
  return RandomValues(kSeed, n, stream, scale);
}

// A product's numbers, and what R6 says it is.
struct Product {
  DType dtype;
  std::size_t rows, n, k;
  std::vector<float> a, bias, residual;
  std::vector<std::byte> blocks;  // As in a file.
  PackedMatrix packed;

  Product(DType type, std::size_t row_count, std::size_t outputs, std::size_t inputs)
      : dtype(type),
        rows(row_count),
        n(outputs),
        k(inputs),
        a(Random(rows * k, 1)),
        bias(Random(n, 3)),
        residual(Random(rows * n, 4)),
        blocks(tensor::ConvertFromF32(type, Random(n * k, 2, 0.1f))),
        packed(n, k, type) {
    a[0] = 0x1p-140f;  // Subnormal: its products are, too.
    if (rows > 1) a[k] = 0x1p100f;
    PackBlocks(blocks, 0, packed);
  }

  MatmulArgs Args(float* out) const {
    MatmulArgs args;
    args.a = a.data();
    args.a_row_stride = k;
    args.w = &packed;
    args.bias = bias.data();
    args.residual = residual.data();
    args.out = out;
    args.out_stride = n;
    return args;
  }

  // From the blocks alone.
  std::vector<float> Expected() const {
    std::vector<float> out(rows * n);
    const std::size_t block_bytes = tensor::BlockBytes(dtype);
    for (std::size_t m = 0; m < rows; ++m) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::byte* block = blocks.data() + i * (k / 32) * block_bytes;
        float acc = 0;
        for (std::size_t b = 0; b < k; b += 32, block += block_bytes) {
          std::uint16_t half;
          std::memcpy(&half, block, 2);
          float partial = 0;
          for (std::size_t j = 0; j < 32; ++j) {
            int q = 0;
            if (dtype == DType::kQ8_0) {
              q = static_cast<std::int8_t>(block[2 + j]);
            } else {
              const int byte = static_cast<int>(block[2 + j % 16]);
              q = (j < 16 ? byte % 16 : byte / 16) - 8;
            }
            partial = std::fma(a[m * k + b + j], static_cast<float>(q), partial);
          }
          acc = std::fma(partial, tensor::F16ToF32(half), acc);
        }
        out[m * n + i] = residual[m * n + i] + (acc + bias[i]);
      }
    }
    return out;
  }
};

class BlockMatmulOnTarget : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override { ForceTarget(GetParam()); }
  void TearDown() override { UseBestTarget(); }
};
INSTANTIATE_TEST_SUITE_P(All, BlockMatmulOnTarget, testing::ValuesIn(AvailableTargets()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(BlockMatmulOnTarget, HasTheBitsOfTheRule) {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    for (std::size_t rows : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 11u, 12u, 13u, 25u, 31u, 200u}) {
      for (std::size_t n : {1u, 15u, 16u, 17u, 48u, 83u, 211u}) {
        if (rows == 200 && n != 83) continue;
        for (std::size_t k : {32u, 64u, 288u, 544u}) {
          const Product product(dtype, rows, n, k);
          const std::vector<float> expected = product.Expected();
          std::vector<float> got(rows * n, 9.0f);
          const std::string where = fmt::format("{} {}x{}x{}", DTypeName(dtype), rows, n, k);
          MatmulArgs args = product.Args(got.data());
          ReferenceMatmul(args, rows);
          ASSERT_TRUE(SameBits(expected, got)) << "reference " << where;
          std::fill(got.begin(), got.end(), 9.0f);
          Matmul(args, {0, rows}, {0, product.packed.panel_count()});
          ASSERT_TRUE(SameBits(expected, got)) << where;
          // The residual may lie in out itself.
          got = product.residual;
          args.residual = got.data();
          Matmul(args, {0, rows}, {0, product.packed.panel_count()});
          ASSERT_TRUE(SameBits(expected, got)) << where;
        }
      }
    }
  }
}

// In any tiles, and by any number of threads.
TEST_P(BlockMatmulOnTarget, PiecesHaveTheSameBits) {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    const Product product(dtype, 37, 211, 96);
    const std::vector<float> expected = product.Expected();
    std::vector<float> got(expected.size());
    const MatmulArgs args = product.Args(got.data());
    const std::size_t panels = product.packed.panel_count();
    Matmul(args, {0, 1}, {0, panels});
    Matmul(args, {1, 20}, {0, 5});
    Matmul(args, {1, 20}, {5, panels});
    for (std::size_t row = 20; row < 37; ++row) Matmul(args, {row, row + 1}, {0, panels});
    EXPECT_TRUE(SameBits(expected, got)) << DTypeName(dtype);
    for (std::size_t threads : {2u, 3u, 8u}) {
      base::ThreadTeam team(threads);
      std::fill(got.begin(), got.end(), 0.0f);
      team.Run([&](base::Member& member) { MatmulShare(args, 37, member); });
      EXPECT_TRUE(SameBits(expected, got)) << DTypeName(dtype) << " on " << threads;
    }
  }
}

// The products of the numbers that the blocks mean, in double: the error is that of k + k/32
// roundings a term at most.
TEST(BlockMatmul, IsTheProductOfTheNumbers) {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    Product product(dtype, 3, 20, 256);
    product.a = Random(product.a.size(), 7);
    std::vector<float> weights(product.n * product.k), got(product.rows * product.n);
    tensor::ConvertToF32(dtype, product.blocks, weights);
    MatmulArgs args = product.Args(got.data());
    args.bias = args.residual = nullptr;
    Matmul(args, {0, product.rows}, {0, product.packed.panel_count()});
    for (std::size_t m = 0; m < product.rows; ++m) {
      for (std::size_t i = 0; i < product.n; ++i) {
        double sum = 0, magnitude = 0;
        for (std::size_t k = 0; k < product.k; ++k) {
          const double term = double{product.a[m * product.k + k]} * weights[i * product.k + k];
          sum += term;
          magnitude += std::abs(term);
        }
        EXPECT_NEAR(got[m * product.n + i], sum, (32 + 8) * 0x1p-24 * magnitude);
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels
