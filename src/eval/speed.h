// Measuring time: medians over repetitions, and what this machine can do at most.
#ifndef KVASIR_EVAL_SPEED_H_
#define KVASIR_EVAL_SPEED_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_team.h"

namespace kvasir::eval {

// Seconds since its making. Thread-compatible.
class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The middle value, or the mean of the two in the middle. Requires at least one.
double Median(std::vector<double> values);

// GB/s (10^9 bytes) at which the team reads a buffer of so many bytes, cut evenly among its
// members, over and over: the best of the repetitions, after a first that is not counted.
double MeasureReadRoof(std::size_t bytes, std::size_t repetitions, base::ThreadTeam& team);

// GFLOP/s of fused multiply-adds in f32 on all members of the team: the best of the repetitions.
double MeasureFmaRoof(std::size_t repetitions, base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_SPEED_H_
