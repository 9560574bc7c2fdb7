#include "engine/waiting_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace kvasir::engine {
namespace {

using ::testing::HasSubstr;

TEST(WaitingRoomTest, LimitsRequestsOfAllAndOfOne) {
  WaitingRoom room({.requests = 3, .requests_per_client = 2, .prompt_tokens = 1000});
  EXPECT_TRUE(room.Enter("a", 10));
  EXPECT_TRUE(room.Enter("a", 10));
  const auto of_client = room.Enter("a", 10);
  ASSERT_FALSE(of_client);
  EXPECT_EQ(of_client.error().code, base::ErrorCode::kExhausted);
  EXPECT_THAT(of_client.error().message, HasSubstr("2 requests of this client"));
  EXPECT_TRUE(room.Enter("b", 10));
  const auto of_all = room.Enter("c", 10);
  ASSERT_FALSE(of_all);
  EXPECT_EQ(of_all.error().code, base::ErrorCode::kExhausted);
  EXPECT_THAT(of_all.error().message, HasSubstr("3 requests wait"));
  EXPECT_EQ(room.refused(), 2u);
  EXPECT_EQ(room.load().requests, 3u);
  EXPECT_EQ(room.load().prompt_tokens, 30u);
  const auto closed = room.CheckOpen("d");  // The same can be known before.
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().message, of_all.error().message);
  EXPECT_EQ(room.refused(), 3u);
  room.Leave("a", 10);
  EXPECT_TRUE(room.CheckOpen("d"));
  EXPECT_EQ(room.load().requests, 2u);  // It takes no place.
  EXPECT_TRUE(room.Enter("c", 5));
  EXPECT_EQ(room.load().prompt_tokens, 25u);
}

TEST(WaitingRoomTest, LimitsTokensButLetsOneWait) {
  WaitingRoom room({.requests = 10, .requests_per_client = 10, .prompt_tokens = 100});
  EXPECT_TRUE(room.Enter("a", 500));
  const auto refused = room.Enter("b", 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("prompts of 500 tokens"));
  room.Leave("a", 500);
  EXPECT_TRUE(room.Enter("a", 60));
  EXPECT_TRUE(room.Enter("b", 40));
  EXPECT_FALSE(room.Enter("c", 1));
}

TEST(WaitingRoomTest, WithoutLimits) {
  WaitingRoom room(WaitingLimits::None());
  for (int i = 0; i < 5000; ++i) EXPECT_TRUE(room.Enter("a", 1u << 30));
}

TEST(WaitingRoomTest, ManyThreadsNeverExceedTheLimit) {
  WaitingRoom room({.requests = 8, .requests_per_client = 8, .prompt_tokens = 1000});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&room, client = std::to_string(t)] {
      for (int i = 0; i < 2000; ++i) {
        if (!room.Enter(client, 3)) continue;
        EXPECT_LE(room.load().requests, 8u);
        room.Leave(client, 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(room.load().requests, 0u);
  EXPECT_EQ(room.load().prompt_tokens, 0u);
}

}  // namespace
}  // namespace kvasir::engine
