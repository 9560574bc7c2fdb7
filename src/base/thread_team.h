// A fixed team of threads that runs one function at a time, all members at once.
//
// A step of a small model lasts 80 µs, so task queues wake too slowly and allocate too much: here
// the members spin briefly for the next region, then park, and inside a region they meet at
// barriers. Work is split statically by index, never by arrival: which thread computes an element
// can never change its bits, because every element is computed whole by one thread (R1–R3).
#ifndef KVASIR_BASE_THREAD_TEAM_H_
#define KVASIR_BASE_THREAD_TEAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"

namespace kvasir::base {

struct IndexRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
};

// Part `index` of `parts` of [0, count), sizes differing by at most one, in ascending order.
inline IndexRange SplitEvenly(std::size_t count, std::size_t parts, std::size_t index) {
  const std::size_t base = count / parts;
  const std::size_t rest = count % parts;
  const std::size_t begin = index * base + (index < rest ? index : rest);
  return {begin, begin + base + (index < rest ? 1 : 0)};
}

class ThreadTeam;

// What a member knows inside a region.
class Member {
 public:
  Member(ThreadTeam& team, std::size_t index) : team_(team), index_(index) {}
  std::size_t index() const { return index_; }
  std::size_t count() const;
  IndexRange Share(std::size_t items) const { return SplitEvenly(items, count(), index_); }
  // Waits until every member has arrived; writes before it are seen after it by all.
  void Barrier();

 private:
  ThreadTeam& team_;
  std::size_t index_;
};

// Owns its threads; Run may be called by one thread at a time (single-threaded use).
// Invariant: outside Run every worker is waiting for the next epoch.
class ThreadTeam {
 public:
  // threads >= 1; the caller of Run is member 0, so threads - 1 are started.
  // kExhausted naming the number if the system does not start so many.
  static Result<std::unique_ptr<ThreadTeam>> Make(std::size_t threads);
  // For small numbers and tests; throws std::system_error where Make returns its Error.
  explicit ThreadTeam(std::size_t threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  std::size_t size() const { return size_; }

  // Calls body(Member&) on every member and returns when all have returned. body must not throw.
  template <typename Body>
  void Run(Body&& body) {
    if (size_ == 1) {
      Member member(*this, 0);
      body(member);
      return;
    }
    RunErased([](void* context, Member& member) { (*static_cast<Body*>(context))(member); },
              const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Number of physical cores this process may use, at least 1.
  static std::size_t PhysicalCores();

 private:
  friend class Member;
  using Function = void (*)(void* context, Member& member);
  void Stop();
  void RunErased(Function function, void* context);
  void WorkerLoop(std::size_t index);
  void BarrierWait();
  template <typename Condition>
  void SpinThenPark(const std::atomic<std::uint32_t>& word, Condition done);

  const std::size_t size_;
  const int spins_;  // 0 when the team is larger than the machine: spinning would starve others.
  Function function_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // One more per region; odd steps not special.
  alignas(64) std::atomic<std::uint32_t> arrived_{0};  // At the current barrier.
  alignas(64) std::atomic<std::uint32_t> phase_{0};    // Barriers passed.
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

inline std::size_t Member::count() const { return team_.size_; }
inline void Member::Barrier() {
  if (team_.size_ > 1) team_.BarrierWait();
}

}  // namespace kvasir::base

#endif  // KVASIR_BASE_THREAD_TEAM_H_
