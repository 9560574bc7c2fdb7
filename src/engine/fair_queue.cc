#include "engine/fair_queue.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::engine {

FairQueue::Account& FairQueue::Join(const std::string& client) {
  Account& account = accounts_[client];
  if (account.members++ == 0) account.client = client;
  return account;
}

void FairQueue::Leave(Account& account) {
  KV_CHECK(account.members > 0);
  if (--account.members > 0) return;
  KV_CHECK(account.items.empty());
  accounts_.erase(accounts_.find(account.client));
}

void FairQueue::Push(Account& account, RequestId item) {
  account.items.push_back(item);
  EnterRing(account);
}

void FairQueue::PushBegun(Account& account, RequestId item) {
  account.items.insert(account.items.begin() + static_cast<std::ptrdiff_t>(account.begun), item);
  ++account.begun;
  EnterRing(account);
}

std::optional<RequestId> FairQueue::Next() {
  if (ring_.empty()) return std::nullopt;
  while (ring_.front()->credit <= 0) {
    ring_.push_back(ring_.front());
    ring_.pop_front();
    BeginTurn();
  }
  return ring_.front()->items.front();
}

void FairQueue::Remove(Account& account, RequestId item) {
  const auto found = std::find(account.items.begin(), account.items.end(), item);
  if (found == account.items.end()) return;
  if (found - account.items.begin() < static_cast<std::ptrdiff_t>(account.begun)) --account.begun;
  account.items.erase(found);
  if (account.items.empty()) LeaveRing(account);
}

void FairQueue::Charge(Account& account, std::uint64_t tokens) {
  account.credit =
      std::max(account.credit - static_cast<std::int64_t>(tokens), -kMostDebt * quantum_);
}

void FairQueue::EnterRing(Account& account) {
  if (account.in_ring) return;
  account.in_ring = true;
  ring_.push_back(&account);
  if (ring_.size() == 1) BeginTurn();
}

void FairQueue::LeaveRing(Account& account) {
  account.in_ring = false;
  account.credit = std::min<std::int64_t>(account.credit, 0);
  const bool in_turn = ring_.front() == &account;
  ring_.erase(std::find(ring_.begin(), ring_.end(), &account));
  if (in_turn && !ring_.empty()) BeginTurn();
}

void FairQueue::BeginTurn() { ring_.front()->credit += quantum_; }

}  // namespace kvasir::engine
