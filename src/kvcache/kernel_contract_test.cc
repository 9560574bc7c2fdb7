// What kernels store through a view is what kernels read through it, after every kind of sharing:
// the two folders mean the same layout.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/attention.h"
#include "kvcache/sequence.h"

namespace kvasir::kvcache {
namespace {

constexpr std::size_t kLayers = 2;
constexpr std::size_t kHeads = 2;
constexpr std::size_t kHeadDim = 8;

std::vector<float> Row(std::size_t layer, std::size_t position, float branch) {
  std::vector<float> row(kHeads * kHeadDim);
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = branch + static_cast<float>((layer * 1000 + position) * row.size() + i);
  }
  return row;
}

// One step, as a model does it.
void Step(CachedSequence& sequence, std::size_t count, float branch) {
  ASSERT_TRUE(sequence.Reserve(count).has_value());
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const kernels::KvView view = sequence.View(layer);
    for (std::size_t p = sequence.length(); p < sequence.length() + count; ++p) {
      const std::vector<float> k = Row(layer, p, branch);
      const std::vector<float> v = Row(layer, p, -branch);
      kernels::StoreKv(view, p, k.data(), v.data());
    }
  }
  sequence.Advance(count);
}

void ExpectRows(const CachedSequence& sequence, std::size_t begin, std::size_t end, float branch) {
  std::vector<float> k(kHeadDim);
  std::vector<float> v(kHeadDim);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    for (std::size_t p = begin; p < end; ++p) {
      const std::vector<float> k_row = Row(layer, p, branch);
      const std::vector<float> v_row = Row(layer, p, -branch);
      for (std::size_t head = 0; head < kHeads; ++head) {
        kernels::LoadKv(sequence.View(layer), p, head, k.data(), v.data());
        for (std::size_t d = 0; d < kHeadDim; ++d) {
          ASSERT_EQ(k[d], k_row[head * kHeadDim + d]) << layer << " " << p;
          ASSERT_EQ(v[d], v_row[head * kHeadDim + d]) << layer << " " << p;
        }
      }
    }
  }
}

class KernelContractTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(KernelContractTest, StoredRowsComeBackThroughForksAndTruncation) {
  const CacheGeometry shape =
      CacheGeometry::Make(
          {.layers = kLayers, .kv_heads = kHeads, .head_dim = kHeadDim, .block_tokens = GetParam()})
          .value();
  const auto pool =
      BlockPool::Make(shape, {.budget_bytes = 64 * shape.block_bytes(), .placement_seed = 5})
          .value();
  CachedSequence trunk(*pool);
  Step(trunk, 37, 1);
  Step(trunk, 1, 1);
  Step(trunk, 3, 1);
  CachedSequence branch = trunk.Fork();
  branch.Truncate(20);
  Step(branch, 30, 0.5f);
  Step(trunk, 5, 1);
  ExpectRows(trunk, 0, 46, 1);
  ExpectRows(branch, 0, 20, 1);
  ExpectRows(branch, 20, 50, 0.5f);
}

INSTANTIATE_TEST_SUITE_P(BlockSizes, KernelContractTest, testing::Values(16, 32, 48, 64, 128, 256));

}  // namespace
}  // namespace kvasir::kvcache
