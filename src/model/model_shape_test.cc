#include <gtest/gtest.h>

#include "model/model.h"

namespace kvasir::model {
namespace {

ModelShape Shape() {
  ModelShape shape;
  shape.layers = 2;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 8;
  shape.embedding = 32;
  shape.context = 100;
  shape.rotary = true;
  return shape;
}

kvcache::CacheGeometry Geometry(const ModelShape& shape, const char* spec) {
  const auto policy = kvcache::CachePolicy::Parse(spec, shape.Policy()).value();
  return kvcache::CacheGeometry::Make(shape.Cache(16, policy)).value();
}

TEST(ModelShapeTest, APlainCacheKeepsEverythingInF32) {
  const auto geometry = kvcache::CacheGeometry::Make(Shape().Cache(16)).value();
  EXPECT_TRUE(geometry.KeepsAll());
  EXPECT_EQ(geometry.bytes_per_token(), 2u * 2 * 8 * 2 * 4);
  EXPECT_EQ(geometry.hidden_dim(), 32u);
}

TEST(ModelShapeTest, TheModelsOwnWindowsFreeBlocksToo) {
  ModelShape shape = Shape();
  shape.windows = {0, 20};
  const auto geometry = kvcache::CacheGeometry::Make(shape.Cache(16)).value();
  ASSERT_EQ(geometry.groups().size(), 2u);
  EXPECT_EQ(geometry.groups()[1].retention.window, 20u);
  EXPECT_EQ(Geometry(shape, "window=30").parts(1)[0].policy.window, 20u);
  EXPECT_EQ(Geometry(shape, "window=10").parts(1)[0].policy.window, 10u);
  EXPECT_EQ(Geometry(shape, "window=10").groups().size(), 1u);
}

TEST(ModelShapeTest, OnlyRotaryWindowsOnEveryLayerHaveNoEnd) {
  ModelShape shape = Shape();
  EXPECT_EQ(shape.MaxPositions(Geometry(shape, "full")), 100u);
  EXPECT_EQ(shape.MaxPositions(Geometry(shape, "0:window=10")), 100u);
  EXPECT_EQ(shape.MaxPositions(Geometry(shape, "window=10,sinks=2")), std::uint64_t{1} << 31);
  EXPECT_EQ(shape.MaxPositions(Geometry(shape, "window=10;1:store=none")), 100u);
  shape.rotary = false;
  EXPECT_EQ(shape.MaxPositions(Geometry(shape, "window=10,sinks=2")), 100u);
}

}  // namespace
}  // namespace kvasir::model
