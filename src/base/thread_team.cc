#include "base/thread_team.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include "base/check.h"
#include "base/fp_env.h"

namespace kvasir::base {
namespace {

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

std::size_t ThreadTeam::PhysicalCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    return std::max(1u, std::thread::hardware_concurrency());
  }
  // Hardware threads of one core list the same siblings; count the distinct lists.
  std::set<std::string> cores;
  std::size_t unknown = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string siblings;
    if (file >> siblings) {
      cores.insert(siblings);
    } else {
      ++unknown;
    }
  }
  return std::max<std::size_t>(1, cores.size() + unknown);
}

ThreadTeam::ThreadTeam(std::size_t threads)
    : size_(threads), spins_(threads <= PhysicalCores() ? 4000 : 0) {
  KV_CHECK(threads >= 1);
  try {
    threads_.reserve(threads - 1);
    for (std::size_t i = 1; i < size_; ++i) threads_.emplace_back([this, i] { WorkerLoop(i); });
  } catch (...) {
    Stop();
    throw;
  }
}

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::Make(std::size_t threads) {
  try {
    return std::make_unique<ThreadTeam>(threads);
  } catch (const std::system_error& error) {
    return MakeError(ErrorCode::kExhausted, "cannot start {} threads: {}", threads,
                     error.code().message());
  }
}

ThreadTeam::~ThreadTeam() { Stop(); }

void ThreadTeam::Stop() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

template <typename Condition>
void ThreadTeam::SpinThenPark(const std::atomic<std::uint32_t>& word, Condition done) {
  for (int i = 0; i < spins_; ++i) {
    if (done(word.load(std::memory_order_acquire))) return;
    CpuRelax();
  }
  for (;;) {
    const std::uint32_t seen = word.load(std::memory_order_acquire);
    if (done(seen)) return;
    word.wait(seen, std::memory_order_acquire);
  }
}

void ThreadTeam::RunErased(Function function, void* context) {
  function_ = function;
  context_ = context;
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  Member member(*this, 0);
  function(context, member);
  BarrierWait();  // Everyone has returned.
}

void ThreadTeam::WorkerLoop(std::size_t index) {
  SetContractFpEnv();
  KV_CHECK(CheckFpEnv().has_value());
  std::uint32_t seen = 0;
  for (;;) {
    SpinThenPark(epoch_, [seen](std::uint32_t epoch) { return epoch != seen; });
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    Member member(*this, index);
    function_(context_, member);
    BarrierWait();
  }
}

void ThreadTeam::BarrierWait() {
  const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  SpinThenPark(phase_, [phase](std::uint32_t now) { return now != phase; });
}

}  // namespace kvasir::base
