#include "kvasir/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kvasir/kvasir.h"

namespace kvasir {
namespace {

using ::testing::HasSubstr;

TEST(ModelTest, TellsWhatItIs) {
  const ModelInfo info = Model::Load(KVASIR_SOURCE_DIR "/models/tang-lesson.gguf").value().info();
  EXPECT_THAT(info.path, ::testing::EndsWith("models/tang-lesson.gguf"));
  EXPECT_EQ(info.architecture, "gpt2");
  EXPECT_EQ(info.layers, 4u);
  EXPECT_EQ(info.heads, 4u);
  EXPECT_EQ(info.kv_heads, 4u);
  EXPECT_EQ(info.embedding, 128u);
  EXPECT_EQ(info.context, 128u);
  EXPECT_EQ(info.cache_bytes_per_token, 4096u);
  EXPECT_GT(info.vocabulary, 1000u);
  EXPECT_GT(info.parameters, 1'000'000u);
  EXPECT_EQ(Model::Load().value().info().vocabulary, info.vocabulary);
}

TEST(ModelTest, TokensAndTextAgree) {
  const Model model = Model::Load().value();
  const std::string text = "大漠孤烟直，";
  const auto tokens = model.Tokenize(text).value();
  EXPECT_EQ(tokens.size(), 6u);
  EXPECT_EQ(model.Detokenize(tokens).value(), text);
  EXPECT_EQ(model.TokenText(tokens[0]), "大");
  EXPECT_EQ(model.TokenText(~0u), "");
  EXPECT_EQ(model.PromptTokens(text).value(), tokens);
  EXPECT_EQ(model.PromptTokens("").value().size(), 1u);
  EXPECT_EQ(model.Tokenize("\xE6").error().code, ErrorCode::kBadData);
  EXPECT_EQ(model.Detokenize({~0u}).error().code, ErrorCode::kUsage);
}

TEST(ModelTest, AFileThatIsNoneIsRefused) {
  const auto absent = Model::Load("no/such/file.gguf");
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().code, ErrorCode::kIo);
  EXPECT_THAT(absent.error().message, HasSubstr("no/such/file.gguf"));
  EXPECT_THAT(absent.error().hint, HasSubstr("KVASIR_MODEL"));
  const auto path = std::filesystem::temp_directory_path() / "kvasir_model_test.gguf";
  std::ofstream(path) << "GGUF, but not really";
  const auto broken = Model::Load(path.string());
  std::filesystem::remove(path);
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().code, ErrorCode::kBadData);
}

TEST(ResultTest, ValueOrError) {
  Result<int> seven = 7;
  EXPECT_TRUE(seven);
  EXPECT_EQ(*seven, 7);
  EXPECT_EQ(seven.value(), 7);
  const Result<std::string> none = Error{ErrorCode::kUsage, "wrong", "try this"};
  EXPECT_FALSE(none);
  EXPECT_EQ(none.error().message, "wrong");
  try {
    static_cast<void>(none.value());
    FAIL() << "nothing was thrown";
  } catch (const Exception& exception) {
    EXPECT_STREQ(exception.what(), "wrong (try this)");
    EXPECT_EQ(exception.error().code, ErrorCode::kUsage);
  }
}

TEST(VersionTest, IsTheProjectsAndNamesTheContract) {
  EXPECT_EQ(std::string(Version()), std::to_string(KVASIR_VERSION_MAJOR) + "." +
                                        std::to_string(KVASIR_VERSION_MINOR) + "." +
                                        std::to_string(KVASIR_VERSION_PATCH));
  EXPECT_EQ(NumericsContract(), 1);
}

}  // namespace
}  // namespace kvasir
