#include "kvcache/layout_name.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace kvasir::kvcache {
namespace {

base::Hash128 NameOf(CacheGeometryOptions options, std::string_view policy = "") {
  if (!policy.empty()) {
    const PolicyShape shape = {options.layers, options.kv_heads, options.head_dim, true, false};
    options.policy = CachePolicy::Parse(policy, shape).value();
  }
  return LayoutName(CacheGeometry::Make(options).value());
}

constexpr CacheGeometryOptions kShape = {
    .layers = 2, .kv_heads = 2, .head_dim = 32, .hidden_dim = 64};

TEST(LayoutNameTest, OneLayoutHasOneName) {
  EXPECT_EQ(NameOf(kShape), NameOf(kShape));
  EXPECT_EQ(NameOf(kShape, "window=32"), NameOf(kShape, "0-1:window=32"));
}

TEST(LayoutNameTest, EveryOtherHasAnother) {
  std::vector<CacheGeometryOptions> shapes(5, kShape);
  shapes[1].layers = 3;
  shapes[2].kv_heads = 4;
  shapes[3].head_dim = 16;
  shapes[4].block_tokens = 32;
  std::vector<base::Hash128> names;
  for (const CacheGeometryOptions& shape : shapes) names.push_back(NameOf(shape));
  for (const char* policy : {"dtype=f16", "dtype=bf16", "k=f16", "v=f16", "window=32", "window=33",
                             "window=33,sinks=1", "0:window=32", "1:window=32", "rotate,dtype=int8",
                             "dtype=int8", "k=int4,group=16", "store=hidden", "0:store=none"}) {
    names.push_back(NameOf(kShape, policy));
  }
  names.push_back(NameOf({.layers = 2, .latent_dim = 64, .rope_dim = 16}));
  names.push_back(NameOf({.layers = 2, .latent_dim = 80}));
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(names[i], names[j]) << i << " " << j;
  }
}

}  // namespace
}  // namespace kvasir::kvcache
