// How far apart two arrays of f32 are, in units in the last place.
#ifndef KVASIR_EVAL_ULP_DIFFERENCE_H_
#define KVASIR_EVAL_ULP_DIFFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace kvasir::eval {

// Steps from a to b along the floats in ascending order; 0 between +0 and −0. Infinity counts as
// the float after the largest. Nothing if one is NaN and their bits differ.
std::optional<std::uint64_t> UlpDistance(float a, float b);

struct UlpDifference {
  std::uint64_t count = 0;                     // Elements compared.
  std::uint64_t differing = 0;                 // Whose bits are not equal.
  std::uint64_t incomparable = 0;              // Of these, with a NaN.
  std::uint64_t ulp_max = 0;                   // Of the others.
  double ulp_mean = 0;                         // Over all elements but the incomparable.
  double absolute_max = 0;                     // Largest |a − b|, infinities left out.
  std::optional<std::size_t> first_differing;  // Index.
};

// Requires arrays of one length. Thread-safe.
UlpDifference CompareUlp(std::span<const float> a, std::span<const float> b);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_ULP_DIFFERENCE_H_
