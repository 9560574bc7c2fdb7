#include "server/session_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/thread_team.h"
#include "engine/engine_test_models.h"

namespace kvasir::server {
namespace {

class SessionFolderTest : public testing::Test {
 protected:
  SessionFolderTest()
      : path_(std::filesystem::path(testing::TempDir()) / "kvasir-session-folder-test"),
        tokenizer_(engine::TokenizerOf("abcdefghijklmnopqrstuvwxyz \n")),
        model_(engine::TinyGpt2(tokenizer_->vocabulary().size(), 64)),
        team_(base::ThreadTeam::Make(1).value()),
        service_(ModelService::Make(*model_, *tokenizer_, {.id = "tiny"}).value()),
        engine_(engine::Engine::Make(*model_, tokenizer_->vocabulary(), *team_, {}).value()),
        folder_(
            path_.string(),
            {.weights = {1, 1}, .contract = 1, .block_tokens = 16, .policy = "full,dtype=f32"}) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~SessionFolderTest() override { std::filesystem::remove_all(path_); }

  ApiResult<std::string> Run(std::string_view name, std::string_view body) {
    return folder_.Run(name, body, *service_, *engine_);
  }
  int StatusOf(std::string_view name, std::string_view body) {
    const auto made = Run(name, body);
    return made ? 200 : made.error().status;
  }

  const std::filesystem::path path_;
  const std::unique_ptr<tokenizer::CharacterTokenizer> tokenizer_;
  const std::unique_ptr<model::Gpt2Model> model_;
  const std::unique_ptr<base::ThreadTeam> team_;
  const std::unique_ptr<ModelService> service_;
  const std::unique_ptr<engine::Engine> engine_;
  const SessionFolder folder_;
};

constexpr const char* kSave = R"({"action":"save","prompt":"hello"})";
constexpr const char* kLoad = R"({"action":"load"})";
constexpr const char* kDelete = R"({"action":"delete"})";

TEST_F(SessionFolderTest, SavesLoadsAndDeletes) {
  EXPECT_EQ(StatusOf("a", kLoad), 404);
  const auto saved = Run("a", kSave);
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_THAT(saved.value(), testing::HasSubstr(R"("tokens":5,"cached_tokens":0)"));
  EXPECT_TRUE(Run("a", kSave));  // Again.
  const auto loaded = Run("a", kLoad);
  ASSERT_TRUE(loaded);
  EXPECT_THAT(loaded.value(), testing::HasSubstr(R"("action":"load","tokens":5)"));
  EXPECT_TRUE(Run("a", kDelete));
  EXPECT_EQ(StatusOf("a", kLoad), 404);
  EXPECT_EQ(StatusOf("a", kDelete), 404);
}

TEST_F(SessionFolderTest, NamesLeadNowhereElse) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(".a"), std::string("a/b"),
        std::string("../a"), std::string("a\0b", 3), std::string("a b"), std::string("\xe6"),
        std::string("a%2e"), std::string(65, 'a')}) {
    for (const char* body : {kSave, kLoad, kDelete}) EXPECT_EQ(StatusOf(name, body), 400) << name;
  }
  EXPECT_TRUE(Run(std::string(64, 'a'), kSave));
  EXPECT_TRUE(Run("A-z_0.9", kSave));
}

TEST_F(SessionFolderTest, ASaltKeepsOthersOut) {
  ASSERT_TRUE(Run("a", R"({"action":"save","prompt":"hello","cache_salt":"x"})"));
  EXPECT_EQ(StatusOf("a", kLoad), 404);
  EXPECT_EQ(StatusOf("a", kDelete), 404);
  EXPECT_EQ(StatusOf("a", kSave), 409);
  EXPECT_EQ(StatusOf("a", R"({"action":"load","cache_salt":"x"})"), 200);
}

TEST_F(SessionFolderTest, WhatIsNotAllowedIsSaid) {
  for (const char* body :
       {"", "[]", "{}", R"({"action":"x"})", R"({"action":"save"})",
        R"({"action":"save","prompt":[]})", R"({"action":"save","prompt":[999999]})",
        R"({"action":"save","prompt":["a","b"]})", R"({"action":"load","prompt":"a"})",
        R"({"action":"load","x":1})"}) {
    EXPECT_EQ(StatusOf("a", body), 400) << body;
  }
  const SessionFolder other(path_.string(), {.weights = {2, 2}, .policy = ""});
  ASSERT_TRUE(Run("a", kSave));
  const auto refused = other.Run("a", kLoad, *service_, *engine_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 409);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("another model"));
  EXPECT_THAT(refused.error().message, testing::Not(testing::HasSubstr(path_.string())));
}

}  // namespace
}  // namespace kvasir::server
