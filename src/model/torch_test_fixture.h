// For tests: a model beside the numbers that PyTorch computed for it in float64 (tests/torch/).
#ifndef KVASIR_MODEL_TORCH_TEST_FIXTURE_H_
#define KVASIR_MODEL_TORCH_TEST_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "kvcache/block_pool.h"
#include "model/model.h"
#include "model/tensor_spec.h"
#include "model/torch_test_arrays.h"

namespace kvasir::model {

// The numbers of one model's forward pass.
class TorchFixture {
 public:
  explicit TorchFixture(const std::string& label) : arrays_({label + ".forward.txt"}) {}

  const std::vector<double>& Get(const std::string& kind, const std::string& name) const {
    return arrays_.Get(kind, name);
  }

  // Between the logits of a Model of this config with the file's weights and the file's logits.
  template <typename Model, typename Config>
  double LargestDifference(const Config& config) const {
    std::vector<float> numbers;
    const auto model =
        Model::Make(config, [&](const TensorSpec& spec) {
          const std::vector<double>& values = Get("weight", spec.name);
          numbers.assign(values.begin(), values.end());
          return base::Result<std::span<const float>>(std::span<const float>(numbers));
        }).value();
    const auto geometry = kvcache::CacheGeometry::Make(model->shape().Cache(16)).value();
    const auto pool =
        kvcache::BlockPool::Make(geometry, {.budget_bytes = 4 * geometry.block_bytes()}).value();
    const std::vector<double>& text = Get("text", "tokens");     // [sequences][context]
    const std::vector<double>& expected = Get("logits", "all");  // [sequences][context][vocab]
    const std::vector<TokenId> tokens(text.begin(), text.end());
    EXPECT_GE(tokens.size(), 2 * config.context);
    base::ThreadTeam team(1);
    Scratch scratch;
    double largest = 0;
    for (std::size_t first = 0; first < tokens.size(); first += config.context) {
      kvcache::CachedSequence sequence(*pool);
      const BatchItem item{&sequence, std::span(tokens).subspan(first, config.context),
                           config.context};
      std::vector<float> logits(config.context * config.vocab);
      EXPECT_TRUE(model->Forward(std::span(&item, 1), scratch, team, logits).has_value());
      for (std::size_t i = 0; i < logits.size(); ++i) {
        largest = std::max(largest, std::abs(logits[i] - expected[first * config.vocab + i]));
      }
    }
    return largest;
  }

 private:
  TorchArrays arrays_;
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_TORCH_TEST_FIXTURE_H_
