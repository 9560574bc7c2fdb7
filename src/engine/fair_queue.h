// FairQueue: whose turn it is, when many clients wait.
#ifndef KVASIR_ENGINE_FAIR_QUEUE_H_
#define KVASIR_ENGINE_FAIR_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "engine/engine_request.h"

namespace kvasir::engine {

// Deficit round robin over tokens. Clients that have something waiting stand in a ring; a new one
// joins at its end. At its turn a client is given `quantum` tokens of credit, and stays in turn as
// long as its credit is above 0; whatever is done for it is charged when it is done, so credit may
// fall below 0, but never below −kMostDebt quanta: what a client used while nobody else wanted it
// is held against it only so far. Credit left over is lost when nothing of the client waits.
//
// So a client with something waiting is in turn after at most kMostDebt + 1 rounds of the ring, in
// each of which every other client starts no more than its quantum and one request.
//
// Within a client requests go in order, those that have begun (choices left to start) first.
// Single-threaded; time O(1) a call, but Remove: O(waiting).
class FairQueue {
 public:
  static constexpr std::int64_t kMostDebt = 32;  // quanta

  // One client, as long as it has members. Addresses are stable.
  struct Account {
    std::string client;
    std::uint64_t members = 0;  // Requests not ended.
    std::int64_t credit = 0;    // tokens
    std::deque<RequestId> items = {};
    std::size_t begun = 0;  // The first items.
    bool in_ring = false;
  };

  // Requires quantum >= 1.
  explicit FairQueue(std::uint64_t quantum) : quantum_(static_cast<std::int64_t>(quantum)) {}
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  // Counts a member in or out. An account without members is gone.
  Account& Join(const std::string& client);
  void Leave(Account& account);
  std::size_t clients() const { return accounts_.size(); }

  void Push(Account& account, RequestId item);
  // Before all items that were not pushed in this way.
  void PushBegun(Account& account, RequestId item);
  // The item whose turn it is, or null. The same until it is removed or its client is charged.
  std::optional<RequestId> Next();
  // Requires nothing: an item that does not wait is ignored.
  void Remove(Account& account, RequestId item);
  void Charge(Account& account, std::uint64_t tokens);

 private:
  void EnterRing(Account& account);
  void LeaveRing(Account& account);
  void BeginTurn();  // Of the first in the ring.

  const std::int64_t quantum_;
  std::map<std::string, Account> accounts_;
  std::deque<Account*> ring_;  // Those with items; the first is in turn.
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_FAIR_QUEUE_H_
