#include "model/default_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace kvasir::model {
namespace {

TEST(DefaultModelTest, IsTheEnvironmentsElseTheBundledOne) {
  setenv("KVASIR_MODEL", "some/model.gguf", 1);
  EXPECT_EQ(DefaultModelPath(), "some/model.gguf");
  setenv("KVASIR_MODEL", "", 1);
  const std::string bundled = DefaultModelPath();
  EXPECT_TRUE(bundled.ends_with("models/tang-lesson.gguf")) << bundled;
  EXPECT_TRUE(std::filesystem::exists(bundled)) << bundled;
  unsetenv("KVASIR_MODEL");
  EXPECT_EQ(DefaultModelPath(), bundled);
}

}  // namespace
}  // namespace kvasir::model
