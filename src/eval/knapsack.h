// One choice for each of several items, of the least loss in all that stays within a budget.
#ifndef KVASIR_EVAL_KNAPSACK_H_
#define KVASIR_EVAL_KNAPSACK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvasir::eval {

struct KnapsackChoice {
  std::uint64_t bytes = 0;
  double loss = 0;  // Finite.
};

// items[i]: what may be chosen for item i, at least one each. Returns an index for each item, or
// nothing if not even the smallest choices fit. Losses add up; of equal ones the fewest bytes, then
// the lower indices win. Exact (the multiple-choice knapsack over its Pareto front) while the front
// has at most 4,096 points; beyond, points within 1/4,096 of the budget of each other count as one.
// Requires that all bytes together stay below 2^64. Thread-safe.
std::optional<std::vector<std::size_t>> ChooseWithin(
    std::span<const std::vector<KnapsackChoice>> items, std::uint64_t budget);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_KNAPSACK_H_
