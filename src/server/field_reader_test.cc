#include "server/field_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server {
namespace {

JsonValue Parse(std::string_view text) {
  auto parsed = ParseBody(text);
  EXPECT_TRUE(parsed) << text;
  return std::move(parsed.value());
}

TEST(ParseBody, RefusesWhatIsNoObject) {
  for (const char* body : {"", " \n", "[]", "1", "\"x\"", "null", "{", "{\"a\":1}}", "{'a':1}",
                           "{\"a\":1,}", "{\"a\":1,\"a\":2}", "{\"a\":{\"b\":1,\"b\":2}}",
                           "{\"a\":\"\xFF\"}", "{\"a\":NaN}", "{\"a\":1e999}", "\xEF\xBB\xBF"}) {
    const auto parsed = ParseBody(body);
    ASSERT_FALSE(parsed) << body;
    EXPECT_EQ(parsed.error().status, 400) << body;
    EXPECT_EQ(parsed.error().code, "invalid_json") << body;
  }
}

TEST(ParseBody, RefusesDeepNesting) {
  const std::string deep = "{\"a\":" + std::string(100000, '[');
  EXPECT_FALSE(ParseBody(deep));
  std::string fine = "{\"a\":" + std::string(200, '[') + std::string(200, ']') + "}";
  EXPECT_TRUE(ParseBody(fine));
}

TEST(FieldReader, ReadsByTypeAndTakesNullForMissing) {
  const JsonValue body = Parse(R"({"b":true,"t":"x","w":7,"d":0.5,"z":null,"l":["p","q"]})");
  const FieldReader fields(body);
  EXPECT_EQ(fields.Bool("b").value(), true);
  EXPECT_EQ(fields.Text("t").value(), "x");
  EXPECT_EQ(fields.Whole("w", {0, 7}).value(), 7u);
  EXPECT_EQ(fields.Number("d", {0, 1}).value(), 0.5);
  EXPECT_EQ(fields.Texts("l", 2).value(), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(fields.Texts("t", 2).value(), (std::vector<std::string>{"x"}));
  EXPECT_FALSE(fields.Bool("z").value());
  EXPECT_FALSE(fields.Whole("missing", {0, 1}).value());
  EXPECT_TRUE(fields.Texts("z", 1).value().empty());
}

TEST(FieldReader, NamesWhatIsOfAnotherTypeOrOutOfRange) {
  const JsonValue body =
      Parse(R"({"b":1,"t":[],"w":1.5,"v":-1,"e":1e2,"big":18446744073709551616,"d":"1",)"
            R"("p":0,"l":["x",1],"many":["a","b","c"],"none":[]})");
  const FieldReader fields(body, "outer.");
  const auto expect = [](const auto& result, const char* param, const char* code) {
    ASSERT_FALSE(result) << param;
    EXPECT_EQ(result.error().status, 400);
    EXPECT_EQ(result.error().param, param);
    EXPECT_EQ(result.error().code, code);
    EXPECT_NE(result.error().message.find(param), std::string::npos);
  };
  expect(fields.Bool("b"), "outer.b", "invalid_type");
  expect(fields.Text("t"), "outer.t", "invalid_type");
  expect(fields.Whole("w", {0, 9}), "outer.w", "invalid_value");
  expect(fields.Whole("v", {0, 9}), "outer.v", "invalid_value");
  expect(fields.Whole("e", {0, 999}), "outer.e", "invalid_value");
  expect(fields.Whole("big", {0, ~std::uint64_t{0}}), "outer.big", "invalid_value");
  expect(fields.Number("d", {0, 9}), "outer.d", "invalid_type");
  expect(fields.Number("p", {0, 1, true}), "outer.p", "invalid_value");
  expect(fields.Number("v", {0, 1}), "outer.v", "invalid_value");
  expect(fields.Texts("l", 9), "outer.l[1]", "invalid_type");
  expect(fields.Texts("many", 2), "outer.many", "invalid_value");
  expect(fields.Texts("none", 2), "outer.none", "invalid_value");
  expect(fields.Only({"b", "t"}), "outer.w", "unknown_parameter");
}

TEST(DumpJson, KeepsOrderAndNumbersAsWritten) {
  const std::string text = R"({"z":1.50,"a":[true,false,null,"\"春"],"n":{"x":-0,"y":1e5}})";
  EXPECT_EQ(DumpJson(Parse(text)),
            R"({"z":1.50,"a":[true,false,null,"\"春"],"n":{"x":0,"y":1e5}})");
}

}  // namespace
}  // namespace kvasir::server
