// For tests: the numbers that PyTorch computed in float64, as tests/torch/ has them.
#ifndef KVASIR_MODEL_TORCH_TEST_ARRAYS_H_
#define KVASIR_MODEL_TORCH_TEST_ARRAYS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kvasir::model {

// Unit roundoff of f32: one operation errs by at most this share of its result.
inline constexpr double kUnitRoundoff = 0x1p-24;

// The arrays of committed files, by kind and name.
class TorchArrays {
 public:
  // Reports through GoogleTest what it cannot read.
  TorchArrays(std::initializer_list<std::string> files) {
    for (const std::string& file : files) Read(file);
  }

  const std::vector<double>& Get(const std::string& kind, const std::string& name) const {
    return arrays_.at({kind, name});
  }
  double One(const std::string& kind, const std::string& name) const {
    return Get(kind, name).at(0);
  }

 private:
  // "kind name count" and count numbers, again and again.
  void Read(const std::string& file) {
    std::ifstream in(KVASIR_SOURCE_DIR "/tests/torch/data/" + file);
    EXPECT_TRUE(in) << file;
    std::string kind, name;
    std::size_t count = 0;
    while (in >> kind >> name >> count) {
      std::vector<double> values(count);
      for (double& value : values) in >> value;
      EXPECT_TRUE(in) << file << ": " << kind << " " << name;
      arrays_[{kind, name}] = std::move(values);
    }
  }

  std::map<std::pair<std::string, std::string>, std::vector<double>> arrays_;
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_TORCH_TEST_ARRAYS_H_
