#include "engine/step_grants.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <vector>

namespace kvasir::engine {
namespace {

const int kA = 0, kB = 0, kC = 0;
using Grants = std::vector<std::size_t>;

Grants Grant(const std::vector<TokenWant>& wants, std::size_t budget) {
  return GrantTokens(wants, budget);
}

TEST(StepGrantsTest, EnoughForAll) {
  EXPECT_EQ(Grant({}, 0), Grants{});
  EXPECT_EQ(Grant({{&kA, 5, false}, {&kB, 1, true}, {&kA, 7, false}}, 13), (Grants{5, 1, 7}));
}

TEST(StepGrantsTest, DecodingComesFirst) {
  EXPECT_EQ(Grant({{&kA, 100, false}, {&kA, 1, true}, {&kA, 3, true}}, 3), (Grants{1, 1, 1}));
  EXPECT_EQ(Grant({{&kA, 100, false}, {&kA, 1, true}, {&kA, 1, true}}, 12), (Grants{10, 1, 1}));
}

TEST(StepGrantsTest, TheFirstOfAClientComesFirst) {
  EXPECT_EQ(Grant({{&kA, 100, false}, {&kA, 100, false}}, 60), (Grants{60, 0}));
  EXPECT_EQ(Grant({{&kA, 20, false}, {&kA, 100, false}}, 60), (Grants{20, 40}));
}

TEST(StepGrantsTest, ClientsShareEvenly) {
  EXPECT_EQ(Grant({{&kA, 100, false}, {&kA, 100, false}, {&kB, 100, false}}, 60),
            (Grants{30, 0, 30}));
  EXPECT_EQ(Grant({{&kA, 100, false}, {&kB, 10, false}, {&kC, 100, false}}, 90),
            (Grants{40, 10, 40}));
}

TEST(StepGrantsTest, RandomWants) {
  const std::array<char, 4> clients = {};
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<TokenWant> wants(1 + random() % 12);
    std::size_t wanted = 0;
    for (TokenWant& want : wants) {
      want = {&clients[random() % clients.size()], random() % 40, random() % 3 == 0};
      wanted += want.tokens;
    }
    const std::size_t budget = wants.size() + random() % 100;
    const Grants grants = Grant(wants, budget);
    EXPECT_EQ(std::accumulate(grants.begin(), grants.end(), std::size_t{0}),
              std::min(wanted, budget));
    std::map<const void*, std::size_t> of_client;
    std::map<const void*, bool> hungry;
    for (std::size_t i = 0; i < wants.size(); ++i) {
      EXPECT_LE(grants[i], wants[i].tokens);
      if (wants[i].decoding && wants[i].tokens > 0) {
        EXPECT_GE(grants[i], 1u);
      }
      of_client[wants[i].client] += grants[i];
      hungry[wants[i].client] = hungry[wants[i].client] || grants[i] < wants[i].tokens;
    }
    // Nobody has more than a hungry client does, but for tokens of those that decode, which come
    // first, and one for rounding.
    for (const auto& [client, is_hungry] : hungry) {
      if (!is_hungry) continue;
      for (const auto& [other, tokens] : of_client) {
        EXPECT_LE(tokens, of_client[client] + wants.size() + 1);
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::engine
