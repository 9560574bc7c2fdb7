// The trainer against PyTorch in float64: logits, loss, every gradient, the optimiser's steps. The
// numbers are committed; tests/torch/make_fixture.py wrote them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/grads.h"
#include "model/torch_test_arrays.h"
#include "training/options.h"
#include "training/parameters.h"
#include "training/trainer.h"
#include "training/windows.h"

namespace kvasir::training {
namespace {

constexpr double kU = model::kUnitRoundoff;

model::Gpt2Config Config(bool tied) {
  model::Gpt2Config config;
  config.layers = 2;
  config.heads = 2;
  config.embedding = 12;
  config.feed_forward = 20;
  config.context = 10;
  config.vocab = 23;
  config.tied_head = tied;
  return config;
}

// How many roundings lie one after the other on the longest way to a logit: each sum counts as long
// as its chain. Every operation of the pass is, in the largest norm, relatively off by its count
// times kU at most, and relative errors of factors add up; so `roundings · kU · Σ |terms|` bounds
// a result whose last sum has these terms. (First order. What cancellation could add in the worst
// case the model leaves out; that roundings have both signs, it leaves out too.)
struct Roundings {
  static constexpr double kNormed = 16;  // Two lane sums and folds, division, root, fma.
  static double Forward(const model::Gpt2Config& c) {
    const auto width = static_cast<double>(c.embedding);
    const auto middle = static_cast<double>(c.feed_forward);
    const auto positions = static_cast<double>(c.context);
    const double attention = static_cast<double>(c.head_dim()) + 2 * positions + 4;
    const double gelu = 8;
    const double layer =
        2 * kNormed + (width + 1) + attention + (width + 2) + (width + 1) + gelu + (middle + 2);
    return 1 + static_cast<double>(c.layers) * layer + kNormed + width;
  }
  // On to a gradient: back through the same operations, products summing over outputs, and the sum
  // over all rows.
  static double Gradient(const model::Gpt2Config& c, double rows) {
    const auto width = static_cast<double>(c.embedding);
    const auto middle = static_cast<double>(c.feed_forward);
    const auto positions = static_cast<double>(c.context);
    const double norm_grad = 24;
    const double gelu_grad = 10;
    const double softmax_grad = 14;
    const double attention = static_cast<double>(c.head_dim()) + softmax_grad + positions;
    const double layer = width + gelu_grad + middle + norm_grad  // MLP
                         + width + attention + 3 * width + norm_grad;
    return Forward(c) + softmax_grad + static_cast<double>(c.vocab) + norm_grad +
           static_cast<double>(c.layers) * layer + rows;
  }
};

struct Case {
  bool tied;
  std::uint64_t shards;

  std::string Name() const { return (tied ? "tied" : "untied") + std::to_string(shards); }
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.Name(); }
};

class TorchFixtureTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    for (double token : fixture_.Get("text", "tokens")) {
      text_.push_back(static_cast<TokenId>(token));
    }
    options_.batch = 3;
    options_.shards = GetParam().shards;
    options_.micro_batch = 2;
    options_.warmup = 0;  // The first step takes the full rate.
    options_.learning_rate = 1e-2;
    options_.clip = 0.25;
    // A seed whose first epoch starts at offset 0: its three windows are the fixture's sequences,
    // in some order, which neither loss nor gradient depends on but for rounding.
    options_.seed = 0;
    while (WindowOrder::Make(text_.size(), 10, options_.seed).value().EpochWindows(0) != 3) {
      ++options_.seed;
    }
    trainer_ = MakeTrainer(Config(GetParam().tied));
  }

  std::unique_ptr<Trainer> MakeTrainer(const model::Gpt2Config& config) {
    auto trainer = Trainer::Make(config, options_, text_, team_).value();
    for (const ParameterSlice& slice : trainer->layout().slices()) {
      const std::vector<double>& values = fixture_.Get("weight", slice.name);
      EXPECT_EQ(values.size(), slice.size) << slice.name;
      for (std::size_t i = 0; i < slice.size; ++i) {
        trainer->parameters()[slice.begin + i] = static_cast<float>(values[i]);
      }
    }
    trainer->ParametersChanged();
    return trainer;
  }

  double LogitBound() const {
    return Roundings::Forward(*trainer_->config().gpt2()) * kU *
           fixture_.One("magnitude", "logits");
  }
  double GradientBound(const std::string& name) const {
    const double rows = 3 * 10 + static_cast<double>(options_.shards);
    return Roundings::Gradient(*trainer_->config().gpt2(), rows) * kU *
           fixture_.One("magnitude", name);
  }
  double LargestLogitDifference(Trainer& trainer) {
    const std::vector<double>& expected = fixture_.Get("logits", "all");  // [3][10][23]
    double largest = 0;
    for (std::size_t s = 0; s < 3; ++s) {
      const auto logits = trainer.Logits(std::span(text_).subspan(10 * s, 10));
      for (std::size_t i = 0; i < logits.size(); ++i) {
        largest = std::max(largest, std::abs(logits[i] - expected[s * logits.size() + i]));
      }
    }
    return largest;
  }

  const std::string label_ = GetParam().tied ? "tied" : "untied";
  const model::TorchArrays fixture_{label_ + ".forward.txt", label_ + ".gradients.txt",
                                    label_ + ".step.txt"};
  std::vector<TokenId> text_;
  TrainOptions options_;
  base::ThreadTeam team_{1};
  std::unique_ptr<Trainer> trainer_;
};
INSTANTIATE_TEST_SUITE_P(Models, TorchFixtureTest,
                         testing::Values(Case{false, 1}, Case{false, 3}, Case{true, 1},
                                         Case{true, 3}),
                         [](const auto& param_info) { return param_info.param.Name(); });

TEST_P(TorchFixtureTest, LogitsAreTorchs) {
  const double largest = LargestLogitDifference(*trainer_);
  RecordProperty("share_of_bound", std::to_string(largest / LogitBound()));
  EXPECT_LE(largest, LogitBound());
  EXPECT_GT(largest, 0.0) << "compares nothing";
}

// That the bound is narrow enough to be worth having: twice the epsilon breaks it.
TEST_P(TorchFixtureTest, AnotherEpsilonWouldBeSeen) {
  model::Gpt2Config config = *trainer_->config().gpt2();
  config.norm_eps = 2e-5f;
  EXPECT_GT(LargestLogitDifference(*MakeTrainer(config)), LogitBound());
}

TEST_P(TorchFixtureTest, LossAndGradientsAreTorchs) {
  std::vector<float> gradient;
  const double loss = trainer_->Gradient(gradient).value();
  // −log p of a token moves by at most twice what logits move by; its own sum has 2 + 4 roundings.
  EXPECT_NEAR(loss, fixture_.One("loss", "mean"), 2 * LogitBound() + 6 * kU);
  double worst = 0;
  for (const ParameterSlice& slice : trainer_->layout().slices()) {
    const std::vector<double>& expected = fixture_.Get("gradient", slice.name);
    ASSERT_EQ(expected.size(), slice.size);
    const double bound = GradientBound(slice.name);
    for (std::size_t i = 0; i < slice.size; ++i) {
      const double difference = std::abs(gradient[slice.begin + i] - expected[i]);
      worst = std::max(worst, difference / bound);
      ASSERT_LE(difference, bound) << slice.name << " " << i << ": " << expected[i];
    }
    // A gradient of nothing but zeros would pass too where the bound is wide.
    const double largest =
        std::abs(*std::max_element(expected.begin(), expected.end(),
                                   [](double a, double b) { return std::abs(a) < std::abs(b); }));
    EXPECT_GT(largest, 100 * bound) << slice.name;
  }
  RecordProperty("share_of_bound", std::to_string(worst));
}

// The first AdamW step moves by rate · g / (|g| + eps), g clipped: how far that may be off follows
// from how far g may be.
TEST_P(TorchFixtureTest, OneClippedStepIsTorchs) {
  const StepReport report = trainer_->Step().value();
  const double norm = fixture_.One("norm", "all");
  ASSERT_GT(norm, 2 * options_.clip) << "nothing would be clipped";
  EXPECT_EQ(report.learning_rate, options_.learning_rate);
  double norm_bound = 0;
  std::size_t decided = 0, all = 0;
  const auto direction = [&](double g) { return g / (std::abs(g) + options_.epsilon); };
  for (const ParameterSlice& slice : trainer_->layout().slices()) {
    const std::vector<double>& expected = fixture_.Get("stepped", slice.name);
    const std::vector<double>& gradient = fixture_.Get("gradient", slice.name);
    const double scale = options_.clip / norm;
    const double bound = GradientBound(slice.name);
    norm_bound += static_cast<double>(slice.size) * bound * bound;
    for (std::size_t i = 0; i < slice.size; ++i) {
      const double g = gradient[i] * scale;
      const double off = std::max(std::abs(direction(g + bound * scale) - direction(g)),
                                  std::abs(direction(g - bound * scale) - direction(g)));
      // The kernel's own: settings rounded to f32 (1 − beta2 loses most, 10 kU), 8 operations;
      // then decay and sum, 4 roundings of the parameter.
      const double tolerance =
          options_.learning_rate * (off + 20 * kU) + 4 * kU * std::abs(expected[i]);
      ASSERT_NEAR(trainer_->parameters()[slice.begin + i], expected[i], tolerance)
          << slice.name << " " << i << ": gradient " << gradient[i];
      decided += off < 1e-3;
      ++all;
    }
  }
  EXPECT_NEAR(report.gradient_norm, norm, std::sqrt(norm_bound));
  // Elsewhere the gradient is so near 0 (a key's bias: exactly 0) that rounding decides its sign.
  EXPECT_GT(decided, all * 4 / 5);
}

// Three steps, with gradients from far below epsilon to 10.
TEST(TorchAdamWTest, ThreeStepsAreTorchs) {
  const model::TorchArrays fixture{"adamw.txt"};
  const auto floats = [&](const std::string& kind, const std::string& name) {
    const std::vector<double>& values = fixture.Get(kind, name);
    std::vector<float> result;
    for (double value : values) result.push_back(static_cast<float>(value));
    return result;
  };
  std::vector<float> parameter = floats("start", "parameter");
  const std::size_t n = parameter.size();
  std::vector<float> first(n), second(n);
  std::vector<double> first_terms(n), update_bound(n);
  for (int t = 1; t <= 3; ++t) {
    const std::string kind = "step" + std::to_string(t);
    const std::vector<float> gradient = floats(kind, "gradient");
    kernels::AdamWStep step;
    step.learning_rate = 1e-2f;
    step.beta1 = 0.9f;
    step.beta2 = 0.95f;
    step.epsilon = 1e-8f;
    step.weight_decay = 0.1f;
    const double correction1 = 1 / (1 - std::pow(0.9, t)),
                 correction2 = 1 / (1 - std::pow(0.95, t));
    step.correction1 = static_cast<float>(correction1);
    step.correction2 = static_cast<float>(correction2);
    step.gradient_scale = 1.0f;
    kernels::AdamW(step, gradient.data(), n, parameter.data(), first.data(), second.data());
    const auto& p = fixture.Get(kind, "parameter");
    const auto& m = fixture.Get(kind, "first_moment");
    const auto& v = fixture.Get(kind, "second_moment");
    for (std::size_t i = 0; i < n; ++i) {
      // 1 − 0.9f is off by 5 kU of itself, 1 − 0.95f by 10; 3 operations a step.
      first_terms[i] = 0.9 * first_terms[i] + 0.1 * std::abs(gradient[i]);
      const double first_bound = t * 8 * kU * first_terms[i];
      const double second_share = t * 13 * kU;  // No terms of two signs.
      ASSERT_NEAR(first[i], m[i], first_bound) << t << " " << i;
      ASSERT_NEAR(second[i], v[i], second_share * v[i] + 1e-38) << t << " " << i;
      // Below 2^−126 squares lose bits; there epsilon is all of the denominator.
      const double root = std::sqrt(v[i] * correction2) + 1e-8;
      const double update = std::abs(m[i]) * correction1 / root;
      update_bound[i] +=
          1e-2 * (first_bound * correction1 / root + update * (second_share + 8 * kU));
      ASSERT_NEAR(parameter[i], p[i], update_bound[i] + t * 3 * kU * std::abs(p[i]))
          << t << " " << i;
    }
  }
}

}  // namespace
}  // namespace kvasir::training
