#include "cli/train_corpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace kvasir::cli {
namespace {

class TrainCorpusTest : public testing::Test {
 protected:
  void SetUp() override {
    home_ = testing::TempDir() + "/train_corpus_test_" + std::to_string(getpid());
    std::filesystem::create_directories(home_);
  }
  void TearDown() override { std::filesystem::remove_all(home_); }
  std::string Put(const std::string& name, const std::string& content) {
    const std::string path = home_ + "/" + name;
    EXPECT_TRUE(base::WriteFileAtomic(base::Env::Default(), path, content).has_value());
    return path;
  }
  static base::Result<TrainCorpus> Read(const TrainSources& sources) {
    return ReadTrainCorpus(base::Env::Default(), sources);
  }
  std::string home_;
};

TEST_F(TrainCorpusTest, WhatTheTrainingTextLacksIsUntrained) {
  const std::string one = Put("one", "春 风"), two = Put("two", "月"), val = Put("val", "人月a风");
  const auto corpus = Read({.texts = {one, two}, .held_out = val}).value();
  EXPECT_EQ(corpus.text_bytes, "春 风\n月");
  EXPECT_EQ(corpus.text.size(), 5u);
  ASSERT_EQ(corpus.held_out.size(), 4u);
  EXPECT_EQ(corpus.vocabulary.pieces.size(), 3u + 256 + 7);
  std::vector<std::string> untrained;
  for (base::TokenId id : corpus.vocabulary.untrained) {
    untrained.push_back(corpus.vocabulary.pieces[id]);
  }
  EXPECT_EQ(untrained, (std::vector<std::string>{"a", "人"}));  // No special or byte token.
  EXPECT_TRUE(Read({.texts = {one}}).value().vocabulary.untrained.empty());
}

TEST_F(TrainCorpusTest, AModelsOwnVocabulary) {
  const std::string first = Put("first", "春 风"), val = Put("val", "人月a风"),
                    next = Put("next", "月春雨");
  const auto old = Read({.texts = {first}, .held_out = val}).value();
  const auto made =
      tokenizer::MakeTokenizer(tokenizer::Vocabulary::Make(old.vocabulary).value()).value();
  const auto corpus = Read({.texts = {next}, .tokenizer = made.get()}).value();
  EXPECT_EQ(corpus.vocabulary.pieces, old.vocabulary.pieces);
  EXPECT_EQ(corpus.text.size(), 5u) << "a character it lacks is bytes";
  std::vector<std::string> untrained;
  for (base::TokenId id : corpus.vocabulary.untrained) {
    untrained.push_back(corpus.vocabulary.pieces[id]);
  }
  EXPECT_EQ(untrained, (std::vector<std::string>{"a", "人"})) << "月 is trained now, 风 was";
}

TEST_F(TrainCorpusTest, HoldsDocumentsOut) {
  std::string poems;
  for (int i = 0; i < 2000; ++i) poems += "poem " + std::to_string(10000 + i) + "\n\n";
  const std::string all = Put("poems", poems);
  const VocabularyChoice characters = {.tokenizer = TokenizerChoice::kCharacter};
  const auto corpus = Read({.texts = {all}, .vocabulary = characters}).value();
  ASSERT_TRUE(corpus.split.has_value());
  EXPECT_EQ(corpus.split->unit, training::DocumentUnit::kParagraph);
  EXPECT_EQ(corpus.split->held_out_documents, 100u);
  EXPECT_EQ(corpus.held_out_bytes.size(), poems.size() / 20);
  EXPECT_EQ(corpus.held_out.size(), poems.size() / 20);
  EXPECT_EQ(corpus.text.size() + corpus.held_out.size(), poems.size());
  EXPECT_TRUE(Read({.texts = {all}, .share = 0.0}).value().held_out.empty());
  EXPECT_FALSE(Read({.texts = {all}, .share = 0.0}).value().split.has_value());
  EXPECT_EQ(Read({.texts = {all}, .share = 0.5}).value().split->held_out_documents, 1000u);
  EXPECT_NE(Read({.texts = {all}, .seed = 2}).value().held_out_bytes, corpus.held_out_bytes);
  // --val says it all.
  const auto given = Read({.texts = {all}, .held_out = all}).value();
  EXPECT_EQ(given.text_bytes, poems);
  EXPECT_FALSE(given.split.has_value());
}

TEST_F(TrainCorpusTest, SmallTextsAreKeptWholeUnlessAsked) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "line " + std::to_string(100 + i) + "\n";
  const std::string text = Put("text", lines);
  EXPECT_EQ(Read({.texts = {text}}).value().text_bytes, lines);
  EXPECT_EQ(Read({.texts = {text}, .share = 0.1}).value().split->held_out_documents, 10u);
  const auto refused = Read({.texts = {text}, .share = 0.001});
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("--val-share 0.001 of this text is 0 tokens"),
            std::string::npos);
  // Held out must not be what the model's context needs.
  std::string large;
  for (int i = 0; i < 1000; ++i) large += lines;
  const std::string long_text = Put("long", large);
  EXPECT_TRUE(Read({.texts = {long_text}, .context = 1000}).value().split.has_value());
  EXPECT_FALSE(Read({.texts = {long_text}, .context = 1u << 20}).value().split.has_value());
}

TEST_F(TrainCorpusTest, AFolderIsItsFiles) {
  std::filesystem::create_directories(home_ + "/book");
  Put("book/2", "风\n");
  Put("book/10", "春");
  const auto corpus = Read({.texts = {home_ + "/book"}}).value();
  EXPECT_EQ(corpus.text_bytes, "春\n风\n");
  EXPECT_EQ(corpus.files, (std::vector<std::string>{home_ + "/book/10", home_ + "/book/2"}));
}

TEST_F(TrainCorpusTest, BytePairsAreLearnedOfTheTextAlone) {
  const std::string text = Put("text", "so it was, so it was"), val = Put("val", "ff ff ff ff");
  const auto corpus = Read({.texts = {text}, .held_out = val}).value();
  EXPECT_EQ(corpus.vocabulary.kind, tokenizer::VocabularyKind::kByteLevel);
  EXPECT_LT(corpus.text.size(), corpus.text_bytes.size());
  EXPECT_EQ(corpus.held_out.size(), corpus.held_out_bytes.size());
  // Bytes that the text lacks are not drawn; nor are those that only occur in longer tokens.
  const auto& untrained = corpus.vocabulary.untrained;
  EXPECT_TRUE(std::find(untrained.begin(), untrained.end(), 'f') != untrained.end());
  EXPECT_TRUE(std::find(untrained.begin(), untrained.end(), ',') == untrained.end());
  EXPECT_EQ(Read({.texts = {text}, .held_out = val, .vocabulary = {.tokens = 258}})
                .value()
                .vocabulary.pieces.size(),
            258u);
}

TEST_F(TrainCorpusTest, ReadsTheEncodingThatIsSaid) {
  const std::string gb = Put("gb", "\xB4\xBA\xB7\xE7");
  const auto corpus =
      Read({.texts = {gb}, .held_out = gb, .encoding = TextEncoding::kGb18030}).value();
  EXPECT_EQ(corpus.text_bytes, "春风");
  EXPECT_EQ(corpus.held_out_bytes, "春风");
  EXPECT_NE(Read({.texts = {gb}}).error().hint.find("gb18030"), std::string::npos);
  const std::string utf8 = Put("utf8", "春风花月江山水人");
  EXPECT_NE(Read({.texts = {gb, utf8}, .encoding = TextEncoding::kGb18030})
                .error()
                .message.find("'" + utf8 + "' is UTF-8, not GB18030"),
            std::string::npos);
}

TEST_F(TrainCorpusTest, RefusesWhatIsNoText) {
  const std::string good = Put("good", "春风"), empty = Put("empty", ""),
                    binary = Put("binary", "春\xff"), short_one = Put("short", "月"),
                    zero = Put("zero", std::string("春\0风", 7));
  const auto message = [&](const std::vector<std::string>& texts, const std::string& val) {
    const auto read = Read({.texts = texts, .held_out = val});
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(message({good}, good), "");
  for (const bool held_out : {false, true}) {
    const auto of = [&](const std::string& bad) {
      return held_out ? message({good}, bad) : message({good, bad}, good);
    };
    EXPECT_EQ(of(empty), "'" + empty + "' is empty");
    EXPECT_NE(of(binary).find("'" + binary + "' is not UTF-8: byte 0xFF at offset 3"),
              std::string::npos);
    EXPECT_EQ(of(zero), "'" + zero + "' is no text: U+0000 at offset 3");
    EXPECT_NE(of(home_ + "/none").find("none"), std::string::npos);
  }
  EXPECT_NE(message({good}, short_one).find("at least 2"), std::string::npos);
  EXPECT_NE(
      message({Put("same", "月月\n月 "), Put("same2", "月")}, "").find("'月', again and again"),
      std::string::npos);
  EXPECT_NE(message({Put("blank", " \n\t")}, "").find("nothing but blanks"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::cli
