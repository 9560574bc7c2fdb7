#include "training/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace kvasir::training {
namespace {

using Files = std::vector<std::string>;

// Forty documents of about the same length.
Files Documents(const std::string& end) {
  Files files;
  for (int i = 0; i < 40; ++i) files.push_back("document " + std::to_string(100 + i) + end);
  return files;
}

std::string Joined(const Files& files) {
  std::string all;
  for (const std::string& file : files) all += file;
  return all;
}

std::multiset<char> Bytes(const TextSplit& split) {
  const std::string all = split.text + split.held_out;
  return {all.begin(), all.end()};
}

TEST(SplitTexts, TakesTheCoarsestUnitThatWillDo) {
  const Files files = Documents("\n");
  const SplitOptions options{.share = 0.2};
  const TextSplit by_file = SplitTexts(files, options);
  EXPECT_EQ(by_file.unit, DocumentUnit::kFile);
  const TextSplit by_paragraph =
      SplitTexts(Files{Joined(Documents("\nof two lines\n \n"))}, options);
  EXPECT_EQ(by_paragraph.unit, DocumentUnit::kParagraph);
  const TextSplit by_line = SplitTexts(Files{Joined(files)}, options);
  EXPECT_EQ(by_line.unit, DocumentUnit::kLine);
  for (const TextSplit* split : {&by_file, &by_paragraph, &by_line}) {
    EXPECT_EQ(split->documents, 40u);
    EXPECT_EQ(split->held_out_documents, 8u);
  }
  EXPECT_EQ(by_file.held_out, by_line.held_out) << "the same documents, whatever holds them";
  EXPECT_EQ(SplitTexts(Files{std::string(1000, 'x')}, options).unit, DocumentUnit::kEnd);
}

TEST(SplitTexts, LosesNothingAndKeepsTheShare) {
  for (const double share : {0.0, 0.01, 0.05, 0.3, 0.5, 1.0}) {
    for (const char* end : {"\n", "\n\n\n", "", "。\n \t\n"}) {
      for (const Files& files : {Documents(end), Files{Joined(Documents(end))}, Files{"\n\nx"}}) {
        const std::string all = Joined(files);
        const TextSplit split = SplitTexts(files, {.share = share});
        EXPECT_EQ(Bytes(split), std::multiset<char>(all.begin(), all.end()));
        EXPECT_LE(static_cast<double>(split.held_out.size()),
                  share * static_cast<double>(all.size()));
        EXPECT_FALSE(base::FirstInvalidUtf8(split.text).has_value());
        EXPECT_FALSE(base::FirstInvalidUtf8(split.held_out).has_value());
      }
    }
  }
  const TextSplit capped = SplitTexts(Documents("\n"), {.share = 0.5, .max_bytes = 40});
  EXPECT_EQ(capped.held_out_documents, 3u);
}

TEST(SplitTexts, CopiesOfADocumentStayTogether) {
  Files files = Documents("\n");
  const Files once = files;
  for (int copy = 0; copy < 2; ++copy) {
    for (const std::string& file : once) files.push_back("  " + file + "\n");
  }
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const TextSplit split = SplitTexts(files, {.share = 0.3, .seed = seed});
    EXPECT_EQ(split.held_out_documents % 3, 0u);
    for (int i = 100; i < 140; ++i) {
      const std::string name = "document " + std::to_string(i);
      EXPECT_NE(split.text.find(name) == std::string::npos,
                split.held_out.find(name) == std::string::npos)
          << name << " seed " << seed;
    }
  }
}

TEST(SplitTexts, DependsOnSeedAndContentOnly) {
  Files files = Documents("\n");
  const TextSplit split = SplitTexts(files, {.share = 0.2});
  EXPECT_EQ(SplitTexts(files, {.share = 0.2}).held_out, split.held_out);
  EXPECT_NE(SplitTexts(files, {.share = 0.2, .seed = 2}).held_out, split.held_out);
  // The documents' order is that of the files; which are held out is not.
  std::reverse(files.begin(), files.end());
  const TextSplit reversed = SplitTexts(files, {.share = 0.2});
  EXPECT_NE(reversed.held_out, split.held_out);
  EXPECT_EQ(Bytes(reversed), Bytes(split));
  for (const std::string& file : files) {
    EXPECT_EQ(reversed.held_out.find(file) == std::string::npos,
              split.held_out.find(file) == std::string::npos);
  }
}

TEST(SplitTexts, OneLargeFileIsPassedOver) {
  Files files = Documents("\n");
  files.push_back(std::string(3000, 'x') + "\n");
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const TextSplit split = SplitTexts(files, {.share = 0.1, .seed = seed});
    EXPECT_EQ(split.held_out.find("xxx"), std::string::npos);
    EXPECT_GE(split.held_out.size(), 175u);
  }
}

TEST(SplitTexts, TheEndBeginsAtALine) {
  const std::string text = std::string(90, 'a') + "\nlast line\nend";
  const TextSplit split = SplitTexts(Files{text}, {.share = 0.15});
  EXPECT_EQ(split.unit, DocumentUnit::kEnd);
  EXPECT_EQ(split.held_out, "last line\nend");
  EXPECT_EQ(SplitTexts(Files{"春风花月江山水，"}, {.share = 0.4}).held_out, "山水，");
  EXPECT_EQ(SplitTexts(Files{"春风"}, {.share = 0.1}).held_out, "");
  EXPECT_EQ(SplitTexts(Files{}, {.share = 0.5}).text, "");
  EXPECT_EQ(DocumentUnitName(split.unit), "the end");
}

}  // namespace
}  // namespace kvasir::training
