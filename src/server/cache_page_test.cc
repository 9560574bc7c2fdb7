#include "server/cache_page.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server {
namespace {

TEST(CachePage, TellsOfTheOwnTenantOnly) {
  engine::EngineSnapshot snapshot;
  engine::SequenceSnapshot mine;
  mine.request = engine::RequestId{7};
  mine.client = "10.0.0.1";
  mine.cache_salt = "s";
  mine.length = 20;
  mine.blocks = {4, 9};
  mine.references = {2, 1};
  engine::SequenceSnapshot twin = mine;
  twin.choice = 1;
  twin.blocks = {4, 10};
  engine::SequenceSnapshot other = mine;
  other.cache_salt = "";
  other.blocks = {11};
  other.references = {1};
  snapshot.sequences = {mine, twin, other};
  const std::string json = CacheJson(snapshot, {16, 100, "full,dtype=f32"}, "s");
  EXPECT_EQ(json,
            R"({"object":"cache","policy":"full,dtype=f32","block_tokens":16,"block_bytes":100,)"
            R"("blocks":3,"bytes":300,"saved_bytes":100,"sequences":[)"
            R"({"request":7,"choice":0,"stem":false,"tokens":20,"blocks":[)"
            R"({"block":4,"tokens":16,"holders":2},{"block":9,"tokens":4,"holders":1}]},)"
            R"({"request":7,"choice":1,"stem":false,"tokens":20,"blocks":[)"
            R"({"block":4,"tokens":16,"holders":2},{"block":10,"tokens":4,"holders":1}]}]})");
  EXPECT_NE(CacheJson(snapshot, {16, 100, "p"}, "").find("\"block\":11"), std::string::npos);
  EXPECT_NE(CacheJson(snapshot, {16, 100, "p"}, "x").find("\"sequences\":[]"), std::string::npos);
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
