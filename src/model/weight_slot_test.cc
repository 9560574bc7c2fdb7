#include "model/weight_slot.h"

#include <gtest/gtest.h>

namespace kvasir::model {
namespace {

TEST(WeightSlot, TensorsMayShareStorage) {
  base::AlignedArray<float> plain;
  kernels::PackedMatrix packed;
  const std::vector<float> ones(6, 1.0f), twos(3, 2.0f);
  for (WeightSlot slot : {WeightSlot{.plain = &plain}, WeightSlot{.packed = &packed}}) {
    slot.total_rows = 3;
    slot.first_row = 1;
    slot.Fill({"below", {2, 3}}, ones);
    slot.first_row = 0;
    slot.Fill({"above", {1, 3}}, twos);
    EXPECT_EQ(slot.Values({"above", {1, 3}}), twos);
    slot.first_row = 1;
    EXPECT_EQ(slot.Values({"below", {2, 3}}), ones);
  }
  EXPECT_EQ(plain.size(), 9u);
  EXPECT_EQ(packed.n(), 3u);
}

// Panels hold 16 rows: a tensor may start and end inside one.
TEST(WeightSlot, RowsMayCrossPanels) {
  kernels::PackedMatrix packed;
  std::vector<float> numbers(20 * 3);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const TensorSpec spec = {"middle", {20, 3}};
  const WeightSlot slot = {.packed = &packed, .first_row = 7, .total_rows = 40};
  WeightSlot(slot).Fill(spec, numbers);
  EXPECT_EQ(slot.Values(spec), numbers);
  EXPECT_EQ(packed.panel(0)[2 * 16 + 7], numbers[2]);        // Row 7, column 2.
  EXPECT_EQ(packed.panel(1)[0 * 16 + 10], numbers[19 * 3]);  // Row 26.
  EXPECT_EQ(packed.panel(1)[11], 0.0f);                      // Row 27 is another tensor's.
}

}  // namespace
}  // namespace kvasir::model
