#include "server/cache_page.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server {
namespace {

using kvcache::CacheGeometry;
using kvcache::CachePolicy;

CacheGeometry Geometry(std::string_view policy) {
  const kvcache::PolicyShape shape = {
      .layers = 2, .kv_heads = 1, .head_dim = 32, .rotary = true, .latent = false};
  kvcache::CacheGeometryOptions options;
  options.layers = 2;
  options.kv_heads = 1;
  options.head_dim = 32;
  options.block_tokens = 16;
  options.hidden_dim = 64;
  options.policy = CachePolicy::Parse(policy, shape).value();
  return CacheGeometry::Make(options).value();
}

TEST(CachePage, TellsOfTheOwnTenantOnly) {
  engine::EngineSnapshot snapshot;
  engine::SequenceSnapshot mine;
  mine.request = engine::RequestId{7};
  mine.client = "10.0.0.1";
  mine.cache_salt = "s";
  mine.length = 20;
  mine.blocks = {{4, 0, 0, 2, 3}, {9, 0, 16, 1, 0}};
  engine::SequenceSnapshot twin = mine;
  twin.choice = 1;
  twin.blocks[1].block = 10;
  engine::SequenceSnapshot other = mine;
  other.cache_salt = "";
  other.blocks = {{11, 0, 0, 1, 0}};
  snapshot.sequences = {mine, twin, other};
  snapshot.kept = {{5, 0, 0, 0, 8}};
  const CacheGeometry geometry = Geometry("dtype=f16");
  const std::string json = CacheJson(snapshot, geometry, "full,dtype=f16", "s");
  // 2 layers, 16 positions, K and V of 32 numbers of 2 bytes: 4,096 bytes a block.
  EXPECT_EQ(json,
            R"({"object":"cache","policy":"full,dtype=f16","block_tokens":16,"block_bytes":4096,)"
            R"("blocks":3,"bytes":12288,"saved_bytes":4096,"sequences":[)"
            R"({"request":7,"choice":0,"stem":false,"tokens":20,"blocks":[)"
            R"({"block":4,"group":0,"dtype":"f16","begin":0,"tokens":16,"holders":2,"hits":3},)"
            R"({"block":9,"group":0,"dtype":"f16","begin":16,"tokens":4,"holders":1,"hits":0}]},)"
            R"({"request":7,"choice":1,"stem":false,"tokens":20,"blocks":[)"
            R"({"block":4,"group":0,"dtype":"f16","begin":0,"tokens":16,"holders":2,"hits":3},)"
            R"({"block":10,"group":0,"dtype":"f16","begin":16,"tokens":4,"holders":1,"hits":0}]}],)"
            R"("kept_blocks":1,"kept_bytes":4096,"kept":[)"
            R"({"block":5,"group":0,"dtype":"f16","begin":0,"tokens":16,"holders":0,"hits":8}]})");
  EXPECT_NE(CacheJson(snapshot, geometry, "p", "").find("\"block\":11"), std::string::npos);
  EXPECT_NE(CacheJson(snapshot, geometry, "p", "x").find("\"sequences\":[]"), std::string::npos);
}

TEST(CachePage, EveryGroupHasItsOwnBytesAndTypes) {
  const CacheGeometry geometry = Geometry("0:k=int8,v=f16,window=32;1:store=hidden");
  ASSERT_EQ(geometry.groups().size(), 2u);
  engine::EngineSnapshot snapshot;
  snapshot.sequences.resize(1);
  snapshot.sequences[0].length = 80;
  snapshot.sequences[0].blocks = {{1, 0, 64, 1, 0}, {2, 1, 0, 1, 0}};
  const std::string json = CacheJson(snapshot, geometry, "p", "");
  EXPECT_NE(json.find(R"("bytes":)" + std::to_string(geometry.block_bytes())), std::string::npos)
      << json;
  EXPECT_NE(json.find(BlockDtype(geometry, 0)), std::string::npos);
  EXPECT_EQ(BlockDtype(geometry, 0) + " " + BlockDtype(geometry, 1), "k=int8,v=f16 hidden f32");
  EXPECT_EQ(BlockDtype(Geometry("dtype=f16;1:dtype=bf16"), 0), "f16+bf16");
}

TEST(CachePage, AnEndlessCacheIsNotListedWithoutEnd) {
  engine::EngineSnapshot snapshot;
  snapshot.kept.resize(kMaxKeptShown + 10);
  const std::string json = CacheJson(snapshot, Geometry("dtype=f32"), "p", "");
  EXPECT_NE(json.find(R"("kept_blocks":4106)"), std::string::npos);
  std::size_t shown = 0;
  for (std::size_t at = 0; (at = json.find("\"hits\"", at)) != std::string::npos; ++at) ++shown;
  EXPECT_EQ(shown, kMaxKeptShown);
}

TEST(CachePage, ReadsWhoseBlocks) {
  EXPECT_EQ(ReadCacheCall("").value(), "");
  EXPECT_EQ(ReadCacheCall("{}").value(), "");
  EXPECT_EQ(ReadCacheCall(R"({"cache_salt":"x"})").value(), "x");
  EXPECT_FALSE(ReadCacheCall(R"({"salt":"x"})"));
  EXPECT_FALSE(ReadCacheCall("[]"));
}

}  // namespace
}  // namespace kvasir::server
