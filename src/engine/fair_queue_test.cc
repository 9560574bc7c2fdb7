#include "engine/fair_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace kvasir::engine {
namespace {

using Account = FairQueue::Account;

RequestId Id(std::uint64_t number) { return RequestId{number}; }

// Takes the next item and charges for it.
std::optional<RequestId> Take(FairQueue& queue, std::map<RequestId, Account*>& owners,
                              std::uint64_t tokens) {
  const auto next = queue.Next();
  if (!next) return next;
  EXPECT_EQ(queue.Next(), next) << "asking changes nothing";
  queue.Charge(*owners.at(*next), tokens);
  queue.Remove(*owners.at(*next), *next);
  return next;
}

TEST(FairQueueTest, OneClientIsServedInOrder) {
  FairQueue queue(10);
  EXPECT_EQ(queue.Next(), std::nullopt);
  Account& account = queue.Join("a");
  std::map<RequestId, Account*> owners;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    if (i > 1) queue.Join("a");
    owners[Id(i)] = &account;
  }
  queue.Push(account, Id(1));
  queue.Push(account, Id(2));
  queue.PushBegun(account, Id(3));
  queue.PushBegun(account, Id(4));
  queue.Push(account, Id(5));
  // Begun ones first; far more than the quantum each, and nobody else to wait for.
  for (const std::uint64_t expected : {3u, 4u, 1u, 2u, 5u}) {
    EXPECT_EQ(Take(queue, owners, 1000), Id(expected));
  }
  EXPECT_EQ(queue.Next(), std::nullopt);
  EXPECT_EQ(queue.clients(), 1u);
  for (int i = 0; i < 5; ++i) queue.Leave(account);
  EXPECT_EQ(queue.clients(), 0u);
}

// Whoever comes first is in turn first, and a turn passes on when nothing more waits.
TEST(FairQueueTest, TurnsBeginInTheOrderOfArrival) {
  FairQueue queue(10);
  std::map<RequestId, Account*> owners;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    Account& account = queue.Join(std::to_string(i));
    owners[Id(i)] = &account;
    queue.Push(account, Id(i));
  }
  for (std::uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(Take(queue, owners, 3), Id(i));
}

// What removes the first begun item must not let a later one pass for begun.
TEST(FairQueueTest, RemovedItemsLeaveNoTrace) {
  FairQueue queue(10);
  Account& account = queue.Join("a");
  queue.PushBegun(account, Id(1));
  queue.Push(account, Id(2));
  queue.Remove(account, Id(1));
  queue.Remove(account, Id(1));
  queue.Remove(account, Id(9));
  queue.PushBegun(account, Id(3));
  EXPECT_EQ(queue.Next(), Id(3));
  queue.Remove(account, Id(3));
  EXPECT_EQ(queue.Next(), Id(2));
}

TEST(FairQueueTest, ClientsGetEqualTokensNotEqualRequests) {
  FairQueue queue(100);
  std::map<RequestId, Account*> owners;
  Account& dear = queue.Join("dear");
  Account& cheap = queue.Join("cheap");
  for (std::uint64_t i = 0; i < 1000; ++i) {
    queue.Push(dear, Id(2 * i));
    queue.Push(cheap, Id(2 * i + 1));
    owners[Id(2 * i)] = &dear;
    owners[Id(2 * i + 1)] = &cheap;
  }
  std::map<Account*, std::uint64_t> tokens;
  for (int i = 0; i < 1000; ++i) {
    const RequestId next = *queue.Next();
    const std::uint64_t cost = owners[next] == &dear ? 90 : 10;
    tokens[owners[next]] += cost;
    Take(queue, owners, cost);
  }
  EXPECT_NEAR(static_cast<double>(tokens[&dear]), static_cast<double>(tokens[&cheap]), 200.0);
}

// Debt is forgiven beyond a bound, and credit is not saved up.
TEST(FairQueueTest, OldDebtAndOldCreditAreForgotten) {
  FairQueue queue(10);
  Account& a = queue.Join("a");
  queue.Charge(a, 1'000'000);
  EXPECT_EQ(a.credit, -FairQueue::kMostDebt * 10);
  queue.Push(a, Id(1));
  EXPECT_EQ(queue.Next(), Id(1));
  EXPECT_GT(a.credit, 0);
  queue.Remove(a, Id(1));
  EXPECT_EQ(a.credit, 0);
}

// Whoever waits is in turn within kMostDebt + 2 rounds, whatever others ask for, and however many
// new clients come.
TEST(FairQueueTest, NobodyStarves) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    FairQueue queue(10);
    std::map<RequestId, Account*> owners;
    Account& patient = queue.Join("patient");
    queue.Charge(patient, random() % 1000);
    std::uint64_t next_id = 1;
    std::uint64_t clients = 1 + random() % 5;
    const auto arrive = [&](const std::string& client) {
      Account& account = queue.Join(client);
      owners[Id(next_id)] = &account;
      queue.Push(account, Id(next_id++));
    };
    for (std::uint64_t i = 0; i < clients * 3; ++i) arrive(std::to_string(i % clients));
    queue.Push(patient, Id(0));
    owners[Id(0)] = &patient;
    std::size_t taken = 0;
    while (true) {
      const auto next = Take(queue, owners, 10 + random() % 50);
      ASSERT_TRUE(next);
      if (*next == Id(0)) break;
      ++taken;
      // A flood: one comes for each that goes, and now and then a client never seen.
      arrive(std::to_string(random() % clients));
      if (taken % 16 == 0) arrive(std::to_string(clients++));
      // In a round each of the others starts at most one here, since all cost a quantum or more.
      ASSERT_LE(taken, (FairQueue::kMostDebt + 2) * clients);
    }
  }
}

}  // namespace
}  // namespace kvasir::engine
