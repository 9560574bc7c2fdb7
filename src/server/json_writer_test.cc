#include "server/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "constraints/json_value.h"

namespace kvasir::server {
namespace {

TEST(JsonWriter, WritesNestedValuesWithCommas) {
  JsonWriter json;
  json.BeginObject().Member("a", std::uint64_t{1}).Key("b").BeginArray();
  json.Uint(2).Null().Bool(true).String("x").BeginArray().EndArray().BeginObject().EndObject();
  json.EndArray().Member("c", 0.5).Key("d").Raw("[1]").EndObject();
  EXPECT_EQ(json.Take(), R"({"a":1,"b":[2,null,true,"x",[],{}],"c":0.5,"d":[1]})");
}

TEST(JsonWriter, AppendsToATextAndKnowsEachLevelsCommas) {
  std::string out = "x";
  JsonWriter json(out);
  constexpr int kDeep = 64;
  for (int i = 0; i < kDeep; ++i) json.BeginArray().Uint(1);
  for (int i = 0; i < kDeep; ++i) json.Uint(2).EndArray();
  std::string expected = "x[1";
  for (int i = 1; i < kDeep; ++i) expected += ",[1";
  for (int i = 0; i < kDeep; ++i) expected += ",2]";
  EXPECT_EQ(out, expected);
}

TEST(JsonWriter, EscapesWhatJsonMustAndReplacesWhatIsNoText) {
  std::string out;
  AppendJsonString(out, std::string("a\"\\\n\r\t\x01\x7F\0春", 12));
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\r\\t\\u0001\\u007f\\u0000春\"");
  std::string broken;
  AppendJsonString(broken, "春\xE6\x98");
  EXPECT_EQ(broken, "\"春\xEF\xBF\xBD\"");
}

TEST(JsonWriter, EveryByteStringIsReadBack) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  std::string out = "{\"x\":";
  AppendJsonString(out, all);
  const auto parsed = constraints::ParseJson("it", out + "}");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed.value().Find("x")->text, all);
}

TEST(JsonWriter, NumbersReadBackAndWhatIsNoNumberIsNull) {
  JsonWriter json;
  json.BeginArray().Double(-1.9500000000000002).Double(1e300).Double(0.1);
  json.Double(std::numeric_limits<double>::infinity());
  json.Double(std::numeric_limits<double>::quiet_NaN());
  json.Uint(std::numeric_limits<std::uint64_t>::max()).EndArray();
  EXPECT_EQ(json.Take(), "[-1.9500000000000002,1e+300,0.1,null,null,18446744073709551615]");
}

TEST(JsonWriterDeathTest, ClosingWhatIsNotOpen) {
  JsonWriter json;
  EXPECT_DEATH(json.EndObject(), "");
}

}  // namespace
}  // namespace kvasir::server
