#include "server/host_check.h"

#include <gtest/gtest.h>

namespace kvasir::server {
namespace {

TEST(HostCheck, LoopbackNamesOnly) {
  for (const char* host : {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:80", "127.3.2.1",
                           "[::1]", "[::1]:8080"}) {
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  }
  for (const char* host : {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "127.evil", "10.0.0.1", "[::2]:80", "evil:127", "[::1].evil"}) {
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  }
}

}  // namespace
}  // namespace kvasir::server
