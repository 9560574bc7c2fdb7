#include "store/store_address.h"
#include "base/test_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <variant>

namespace kvasir::store {
namespace {

RedisOptions Redis(std::string_view text) {
  const auto parsed = ParseStoreAddress(text);
  EXPECT_TRUE(parsed) << text;
  return std::get<RedisOptions>(parsed.value());
}

TEST(StoreAddressTest, AServer) {
  EXPECT_EQ(Redis("redis://cache").host, "cache");
  EXPECT_EQ(Redis("redis://cache").port, 6379);
  EXPECT_EQ(Redis("redis://cache/").database, 0);
  const RedisOptions full = Redis("redis://10.0.0.1:7000/3");
  EXPECT_EQ(full.host, "10.0.0.1");
  EXPECT_EQ(full.port, 7000);
  EXPECT_EQ(full.database, 3);
  EXPECT_EQ(Redis("redis://[::1]:7").host, "::1");
  EXPECT_EQ(Redis("redis://[::1]:7").port, 7);
  EXPECT_EQ(Redis("redis://[::1]").port, 6379);
}

TEST(StoreAddressTest, ADirectory) {
  const auto parsed = ParseStoreAddress("some/place");
  EXPECT_EQ(std::get<LmdbOptions>(parsed.value()).directory, "some/place");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(std::get<LmdbOptions>(ParseStoreAddress("default").value()).directory,
            "/x/kvasir/store");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(std::get<LmdbOptions>(ParseStoreAddress("default").value()).directory,
            "/h/.cache/kvasir/store");
  unsetenv("HOME");
  EXPECT_FALSE(ParseStoreAddress("default"));
}

TEST(StoreAddressTest, WhatIsNoAddressIsNamed) {
  for (const auto& [text, named] : {std::pair{"", "empty"},
                                    {"redis://", "names no host"},
                                    {"redis://:7", "names no host"},
                                    {"redis://a:", "port is '?'"},
                                    {"redis://a:0", "port is '0'"},
                                    {"redis://a:65536", "port is '65536'"},
                                    {"redis://a:7x", "port is '7x'"},
                                    {"redis://a/x", "database is 'x'"},
                                    {"redis://a/-1", "database is '-1'"},
                                    {"redis://[::1", "no host in [ ]"},
                                    {"redis://[::1]7", "no host in [ ]"},
                                    {"redis://:secret@a", "password"},
                                    {"http://a", "there is no store"},
                                    {"rediss://a", "there is no store"}}) {
    const auto parsed = ParseStoreAddress(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, base::ErrorCode::kUsage);
    EXPECT_THAT(parsed.error().message, testing::HasSubstr(named)) << text;
    EXPECT_THAT(parsed.error().message, testing::Not(testing::HasSubstr("secret")));
  }
}

TEST(StoreAddressTest, OpensEither) {
  const base::TestDirectory directory;
  const auto lmdb = OpenStore({.address = LmdbOptions{.directory = directory.path()}});
  ASSERT_TRUE(lmdb);
  EXPECT_THAT(std::string(lmdb.value()->name()), testing::HasSubstr(directory.path()));
  const auto redis = OpenStore({.address = RedisOptions{.port = 1}});
  ASSERT_TRUE(redis);
  EXPECT_EQ(redis.value()->name(), "Redis at 127.0.0.1:1");
}

}  // namespace
}  // namespace kvasir::store
