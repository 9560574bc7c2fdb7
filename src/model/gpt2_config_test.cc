#include "model/gpt2_config.h"

#include <gtest/gtest.h>

namespace kvasir::model {
namespace {

Gpt2Config Lesson() {
  Gpt2Config config;
  config.vocab = 6915;
  return config;
}

TEST(Gpt2Config, LessonHasItsParameters) {
  EXPECT_TRUE(CheckConfig(Lesson()).has_value());
  EXPECT_EQ(Gpt2Tensors(Lesson()).size(), 53u);
  EXPECT_EQ(ParameterCount(Lesson()), 2579968u);
  Gpt2Config tied = Lesson();
  tied.tied_head = true;
  EXPECT_EQ(ParameterCount(tied), 2579968u - 6915 * 128);
}

TEST(Gpt2Config, RefusesWhatCannotRun) {
  const auto message = [](auto change) {
    Gpt2Config config = Lesson();
    change(config);
    const auto result = CheckConfig(config);
    return result ? std::string() : result.error().message;
  };
  EXPECT_NE(message([](auto& c) { c.heads = 3; }).find("128 is not a multiple"), std::string::npos);
  EXPECT_NE(message([](auto& c) { c.heads = 0; }).find("is 0"), std::string::npos);
  EXPECT_NE(message([](auto& c) { c.layers = 513; }).find("513"), std::string::npos);
  EXPECT_NE(message([](auto& c) { c.heads = 1, c.embedding = 1024; }).find("head dimension 1024"),
            std::string::npos);
  EXPECT_NE(message([](auto& c) { c.norm_eps = -1; }).find("-1"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::model
