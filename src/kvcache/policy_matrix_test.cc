// The table of combinations: its page, and that the parser decides every combination by it.
#include "kvcache/policy_matrix.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace kvasir::kvcache {
namespace {

using kernels::KvType;
using ::testing::HasSubstr;

TEST(PolicyMatrix, ThePageIsTheTable) {
  const std::string path = std::string(KVASIR_SOURCE_DIR) + "/docs/kvcache/matrix.md";
  std::ifstream file(path, std::ios::binary);
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const std::string wanted = PolicyMatrixPage();
  if (page == wanted) return;
  const std::string copy = ::testing::TempDir() + "matrix.md";
  std::ofstream(copy, std::ios::binary) << wanted;
  FAIL() << "docs/kvcache/matrix.md is not what the table says; that has been written to " << copy;
}

TEST(PolicyMatrix, HasOneVerdictForBothOrders) {
  for (std::size_t a = 0; a < kPolicyFeatures; ++a) {
    for (std::size_t b = 0; b < kPolicyFeatures; ++b) {
      if (a == b) continue;
      const PolicyPair& pair = PolicyPairOf(PolicyFeature(a), PolicyFeature(b));
      EXPECT_EQ(&pair, &PolicyPairOf(PolicyFeature(b), PolicyFeature(a)));
      EXPECT_EQ(pair.first, PolicyFeature(std::min(a, b)));
      EXPECT_EQ(pair.second, PolicyFeature(std::max(a, b)));
      EXPECT_FALSE(pair.text.empty());
    }
  }
}

// The decisions, written a second time: by hand, not from the table.
bool Expected(const HeadPolicy& head, bool some_heads, bool rotary) {
  const bool rounded = head.k != KvType::kF32 || head.v != KvType::kF32;
  if (head.sinks > head.window) return false;
  if (head.store != KvStore::kKv && (rounded || head.rotate)) return false;
  if (head.store == KvStore::kHidden && some_heads) return false;
  if (rotary && head.sinks != 0) {
    return head.store == KvStore::kKv && head.k != KvType::kInt4Channel;
  }
  return true;
}

TEST(PolicyMatrix, TheParserDecidesEveryCombinationByIt) {
  constexpr std::pair<const char*, KvType> kTypes[] = {
      {"f32", KvType::kF32},   {"f16", KvType::kF16},   {"bf16", KvType::kBf16},
      {"int8", KvType::kInt8}, {"int4", KvType::kInt4}, {"int4,group=32", KvType::kInt4Channel}};
  int allowed = 0, refused = 0;
  for (const auto& [k_text, k] : kTypes) {
    for (const auto& [v_text, v] : kTypes) {
      if (v == KvType::kInt4Channel) continue;
      for (int bits = 0; bits < 32; ++bits) {
        for (const KvStore store : {KvStore::kKv, KvStore::kHidden, KvStore::kNone}) {
          const bool some_heads = (bits & 8) != 0, rotary = (bits & 16) != 0;
          HeadPolicy head = {.k = k, .v = v};
          head.group = k == KvType::kInt4Channel ? 32 : 0;
          head.window = (bits & 1) != 0 ? 64 : 0;
          head.sinks = (bits & 2) != 0 ? 4 : 0;
          head.rotate = (bits & 4) != 0;
          head.store = store;
          std::string spec = fmt::format("{}v={},k={},store={}", some_heads ? "1.0:" : "", v_text,
                                         k_text, KvStoreName(store));
          if (head.window != 0) spec += ",window=64";
          if (head.sinks != 0) spec += ",sinks=4";
          if (head.rotate) spec += ",rotate";
          const PolicyShape shape = {.layers = 2, .kv_heads = 2, .head_dim = 32, .rotary = rotary};
          const auto policy = CachePolicy::Parse(spec, shape);
          ASSERT_EQ(policy.has_value(), Expected(head, some_heads, rotary)) << spec;
          (policy ? allowed : refused) += 1;
          if (policy) {
            EXPECT_EQ(policy.value().At(1, 0), head) << spec;
          } else {
            EXPECT_THAT(policy.error().message, HasSubstr(" at character "));
          }
          // What the table says of the head is what the parser does.
          const bool whole = head.sinks <= head.window;
          PolicyFeatureSet features = FeaturesOf(head);
          if (some_heads) features |= Only(PolicyFeature::kSomeHeads);
          if (whole) {
            EXPECT_EQ(FirstConflict(features, rotary) == nullptr, policy.has_value()) << spec;
          }
        }
      }
    }
  }
  EXPECT_EQ(allowed + refused, 6 * 5 * 32 * 3);
  EXPECT_GT(allowed, 500);
}

}  // namespace
}  // namespace kvasir::kvcache
