#include "formats/json_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kvasir::formats {
namespace {

using ::testing::HasSubstr;

JsonDocument Parsed(const std::string& text) { return JsonDocument::Parse(text, "f").value(); }

void Refused(const std::string& text, const std::string& why) {
  const auto read = JsonDocument::Parse(text, "f.json");
  ASSERT_FALSE(read.has_value()) << text;
  EXPECT_EQ(read.error().code, base::ErrorCode::kBadData);
  EXPECT_THAT(read.error().message, HasSubstr("f.json: "));
  EXPECT_THAT(read.error().message, HasSubstr(why));
  EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
}

TEST(JsonDocument, GivesEveryKindOfValue) {
  const JsonDocument file = Parsed(
      R"({"n":null,"t":true,"u":18446744073709551615,"i":-3,"f":1.5,"s":"a\n春","l":[1,[2],{}],
                 "o":{"k":"v"}})");
  const JsonNode root = file.root();
  EXPECT_TRUE(root.is_object());
  EXPECT_TRUE(root.Find("n")->is_null());
  EXPECT_EQ(root.Find("t")->AsBool(), true);
  EXPECT_EQ(root.Find("u")->AsUint(), 18446744073709551615u);
  EXPECT_EQ(root.Find("i")->AsUint(), std::nullopt);
  EXPECT_EQ(root.Find("i")->AsDouble(), -3.0);
  EXPECT_EQ(root.Find("f")->AsDouble(), 1.5);
  EXPECT_EQ(root.Find("f")->AsUint(), std::nullopt);
  EXPECT_EQ(root.Find("s")->AsString(), "a\n春");
  EXPECT_EQ(root.Find("s")->AsBool(), std::nullopt);
  EXPECT_EQ(root.Find("o")->Find("k")->AsString(), "v");
  EXPECT_FALSE(root.Find("x"));
  EXPECT_FALSE(root.Find("l")->Find("k"));
  std::vector<std::string> texts;
  for (const JsonItem& item : root.Find("l")->items()) texts.push_back(item.value.Text());
  EXPECT_EQ(texts, (std::vector<std::string>{"1", "an array", "an object"}));
  std::string keys;
  for (const JsonItem& item : root.items()) keys += item.key;
  EXPECT_EQ(keys, "ntuifslo");
  for (const JsonItem& item : root.Find("s")->items()) ADD_FAILURE() << item.key;
}

TEST(JsonDocument, NodesOutliveAMove) {
  JsonDocument file = Parsed(R"(["short"])");
  const JsonNode root = file.root();
  const JsonDocument moved = std::move(file);
  EXPECT_EQ((*root.items().begin()).value.AsString(), "short");
  EXPECT_EQ((*moved.root().items().begin()).value.AsString(), "short");
}

TEST(JsonDocument, TextsAreOfOneLine) {
  const JsonDocument file = Parsed(R"([-1,"a\nb",2.5,1.0,false])");
  std::string all;
  for (const JsonItem& item : file.root().items()) all += item.value.Text() + ";";
  EXPECT_EQ(all, "-1;'a\\nb';2.5;1;false;");
}

TEST(JsonDocument, RefusesWhatIsNotJson) {
  Refused("", "not JSON");
  Refused("{} x", "not JSON");
  Refused("{\"a\":NaN}", "not JSON");
  Refused("[1e999]", "not JSON");
  Refused("\"\xff\"", "not JSON");
  Refused("[\"\n\"]", "not JSON");
  Refused(R"({"a":1,"b":{"c":1,"d":2,"c":3}})", "two members 'c'");
  Refused(std::string(kMaxJsonFileDepth + 1, '['), "nested more than 64 deep");
  EXPECT_TRUE(JsonDocument::Parse(
                  std::string(kMaxJsonFileDepth, '[') + std::string(kMaxJsonFileDepth, ']'), "f")
                  .has_value());
}

TEST(JsonDocument, EveryPrefixIsAnError) {
  const std::string text = R"({"a":[1,2.5,true,null],"b":{"c":"d"}})";
  ASSERT_TRUE(JsonDocument::Parse(text, "f").has_value());
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(JsonDocument::Parse(text.substr(0, bytes), "f").has_value()) << bytes;
  }
}

TEST(JsonDocument, StringsAreWrittenAsTheyAreRead) {
  std::string text = "a\"b\\c\n\t\x01 春";
  std::string json;
  AppendJsonString(text, json);
  EXPECT_EQ(Parsed(json).root().AsString(), text);
  std::string bad;
  AppendJsonString("\xff", bad);
  EXPECT_EQ(bad, "\"\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace kvasir::formats
