#include "constraints/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "constraints/json_value.h"
#include "constraints/language_test_util.h"
#include "constraints/schema.h"
#include "constraints/schema_format.h"
#include "constraints/schema_nodes.h"
#include "constraints/schema_references.h"
#include "constraints/schema_shapes.h"

namespace kvasir::constraints {
namespace {

using ::testing::HasSubstr;

void Check(const std::string& schema, const std::vector<std::string>& good,
           const std::vector<std::string>& bad, JsonSchemaOptions options = {}) {
  SCOPED_TRACE(schema);
  auto grammar = CompileJsonSchema(schema, options);
  ASSERT_TRUE(grammar) << grammar.error().message;
  Recognizer recognizer(std::move(grammar).value());
  for (const std::string& text : good) EXPECT_TRUE(Accepts(recognizer, text)) << text;
  for (const std::string& text : bad) EXPECT_FALSE(Accepts(recognizer, text)) << text;
}

std::string ErrorOf(const std::string& schema, JsonSchemaOptions options = {}) {
  const auto grammar = CompileJsonSchema(schema, options);
  EXPECT_FALSE(grammar) << schema;
  return grammar ? "" : grammar.error().message;
}

// A value as `--json-layout compact` has it, of numbers as they are.
std::string Written(const JsonValue& value) {
  const auto quoted = [](const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false);
  };
  std::string all;
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kFalse:
      return "false";
    case JsonValue::Kind::kTrue:
      return "true";
    case JsonValue::Kind::kNumber:
      return value.text;
    case JsonValue::Kind::kString:
      return quoted(value.text);
    case JsonValue::Kind::kArray:
      for (const JsonValue& item : value.items) all += (all.empty() ? "" : ",") + Written(item);
      return "[" + all + "]";
    case JsonValue::Kind::kObject:
      for (const auto& [name, member] : value.members) {
        all += (all.empty() ? "" : ",") + quoted(name) + ":" + Written(member);
      }
      return "{" + all + "}";
  }
  return all;
}

TEST(JsonSchema, Types) {
  Check("{}", {"null", "true", "1.5e3", "\"a\"", "[1,[]]", "{\"a\":{}}"},
        {"", "nul", "01", "1.", "\"", "[1,]", "{a:1}", "{\"a\":1,}", "+1", ".5", "NaN"});
  Check("true", {"[]"}, {"x"});
  Check(R"({"type":["null","boolean"]})", {"null", "true", "false"}, {"0", "\"null\""});
  Check(R"({"type":"integer"})", {"0", "-7", "1.0", "10e-1", "1e3", "120E-1", "0.0e5", "12.30e1"},
        {"1.5", "1e-1", "15e-1", "-0.1", "12.30e0", "true"});
}

TEST(JsonSchema, Strings) {
  Check(R"({"type":"string"})",
        {"\"\"", "\"春\"", R"("\n\u6625\/\"")", R"("\ud83d\ude00")", "\"😀\"", R"("\u0000")"},
        {"\"\n\"", R"("\x")", R"("\u12")", R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")",
         "\"\xff\"", "'a'"});
  // Lengths count characters, however they are spelled.
  Check(R"({"type":"string","minLength":2,"maxLength":2})",
        {"\"ab\"", "\"春风\"", R"("\u0061\n")", R"("😀\ud83d\ude00")"},
        {"\"a\"", "\"abc\"", "\"春\"", R"("\ud83d\ude00")"});
  Check(R"({"const":"a/b"})", {"\"a/b\"", R"("\u0061\/b")", R"("a\u002Fb")", R"("a\u002fb")"},
        {"\"a\\b\"", "\"ab\""});
}

// Case C103.
TEST(JsonSchema, PatternIsASearch) {
  Check(R"({"type":"string","pattern":"b"})", {"\"abc\"", "\"b\"", R"("\u0062")"}, {"\"a\""});
  Check(R"({"type":"string","pattern":"^a|b$"})", {"\"axx\"", "\"xxb\""}, {"\"xax\""});
  Check(R"({"type":"string","pattern":""})", {"\"\"", "\"x\""}, {});
  Check(R"({"type":"string","pattern":"^a+$","minLength":2,"maxLength":3})", {"\"aa\"", "\"aaa\""},
        {"\"a\"", "\"aaaa\"", "\"ab\""});
  Check(R"({"pattern":"^a"})", {"1", "\"ab\""}, {"\"b\""});
}

// Case C107.
TEST(JsonSchema, NumberBounds) {
  Check(R"({"type":"number","exclusiveMinimum":0})", {"0.1", "0.001", "1", "1e-9"},
        {"0", "0.0", "-0.5", "-0"});
  Check(R"({"type":"number","minimum":1,"maximum":5})", {"5", "5.0", "1.0", "0.1e1", "50e-1"},
        {"5.7", "0.9", "5.0001", "5e1", "-1"});
  Check(R"({"type":"number","minimum":-4,"maximum":4})", {"-0.5", "-4", "0", "3.9"},
        {"-4.1", "4.01"});
  Check(R"({"type":"number","minimum":4.0})", {"4.1", "4", "1e1"}, {"3.9", "5e-1"});
  Check(R"({"type":"integer","multipleOf":5,"minimum":12})", {"15", "1.5e1", "100"},
        {"12", "10", "16", "1.5e0"});
  Check(R"({"multipleOf":0.01})", {"0.07", "3", "1e5", "7e-2"}, {"0.075", "7e-3"});
  Check(R"({"enum":[1,2.50]})", {"1", "1.0", "2.5", "25e-1"}, {"2", "1.5", "\"1\""});
}

// Case C109.
TEST(JsonSchema, Arrays) {
  const std::string prefix =
      R"({"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]})";
  Check(prefix, {"[]", "[\"a\"]", "[\"a\",1]", "[ \"a\" , 1 , true ]"}, {"[1]", "[\"a\",\"b\"]"});
  Check(R"({"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false})",
        {"[\"a\",1]"}, {"[\"a\",1,true]", "[1]"});
  Check(R"({"type":"array","maxItems":2,"frobnicate":1})", {"[]", "[1,{}]"}, {"[1,2,3]"});
  Check(R"({"minItems":2,"maxItems":2})", {"[1,2]", "7"}, {"[1]", "[1,2,3]", "[]"});
  Check(R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"});
  Check(R"({"items":{"minItems":1,"type":"array","items":{"type":"array","minItems":1}}})",
        {"[[[1]]]", "[]"}, {"[[[]]]", "[[]]"});
  Check(R"({"type":"array","contains":{"type":"integer"}})", {"[1]", "[true,1]", "[1,null]"},
        {"[]", "[true]"});
  Check(R"({"type":"array","contains":{"const":1},"items":{"enum":[1,2]},"maxItems":2})",
        {"[1]", "[2,1]", "[1,2]"}, {"[2]", "[2,2]", "[2,2,1]"});
  Check(R"({"not":{"items":{"type":"integer"}},"type":"array"})", {"[1,true]", "[null]"},
        {"[]", "[1,2]"});
}

TEST(JsonSchema, Objects) {
  const std::string person =
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},
          "required":["a"],"additionalProperties":false})";
  Check(person, {R"({"a":1})", R"({"b":"x","a":1})", R"({ "\u0061" : 1 })"},
        {"{}", R"({"b":"x"})", R"({"a":1,"c":2})", R"({"a":"1"})", R"({"a":1,"a":2})",
         R"({"a":1,"\u0061":2})"});
  Check(R"({"properties":{"a":false},"type":"object"})", {"{}", R"({"b":1})", R"({"aa":1})"},
        {R"({"a":1})"});
  Check(R"({"type":"object","additionalProperties":{"type":"integer"},"properties":{"s":{}}})",
        {R"({"x":1,"s":"t"})", R"({"sx":1})"}, {R"({"x":"1"})"});
  Check(R"({"type":"object","patternProperties":{"^x":{"type":"integer"}},
            "additionalProperties":{"type":"string"}})",
        {R"({"x1":1,"y":"s"})", R"({"\u00781":2})"}, {R"({"x1":"s"})", R"({"y":1})"});
  Check(R"({"type":"object","propertyNames":{"maxLength":2}})", {"{}", R"({"ab":1})"},
        {R"({"abc":1})"});
  Check(R"({"type":"object","minProperties":1,"maxProperties":2})",
        {R"({"a":1})", R"({"a":1,"b":2})"}, {"{}", R"({"a":1,"b":2,"c":3})"});
  Check(R"({"type":"object","required":["a","b"],"maxProperties":2})", {R"({"b":1,"a":2})"},
        {R"({"a":1,"c":2})", R"({"a":1})"});
  Check(R"({"type":"object","dependentRequired":{"a":["b"]}})",
        {"{}", R"({"b":1})", R"({"a":1,"b":2})"}, {R"({"a":1})"});
}

TEST(JsonSchema, Combinations) {
  Check(R"({"anyOf":[{"type":"integer"},{"minLength":2,"type":"string"}]})", {"1", "\"ab\""},
        {"1.5", "\"a\""});
  Check(R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5", "\"a\""}, {"3", "1.5"});
  Check(R"({"allOf":[{"properties":{"a":{"minimum":2}}},{"properties":{"a":{"maximum":3}}}],
            "required":["a"],"type":"object"})",
        {R"({"a":2})", R"({"a":3,"b":9})"}, {R"({"a":4})", R"({"a":1})", "{}"});
  Check(R"({"not":{"type":["string","integer"]}})", {"1.5", "null", "{}"}, {"1", "\"\""});
  Check(R"({"type":"string","not":{"enum":["a","bc"]}})", {"\"\"", "\"b\"", "\"bcd\""},
        {"\"a\"", "\"bc\"", R"("\u0061")"});
  Check(R"({"not":{"required":["a"]},"type":"object"})", {"{}", R"({"b":1})"}, {R"({"a":1})"});
  Check(R"({"not":{"properties":{"a":{"type":"integer"}}},"type":"object"})", {R"({"a":"x"})"},
        {"{}", R"({"a":1})"});
  Check(R"({"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"required":["x"]},
            "else":{"required":["y"]},"type":"object"})",
        {R"({"k":1,"x":0})", R"({"k":2,"y":0})", R"({"y":0})", R"({"y":1,"x":0,"k":1})"},
        {R"({"k":1,"y":0})", R"({"x":0})"});
  Check(R"({"const":{"a":[1,null],"b":"x"}})", {R"({"b":"x","a":[1.0,null]})"},
        {R"({"a":[1]})", R"({"a":[1,null],"b":"x","c":0})"});
  Check(R"({"enum":[[1],{"a":1},null]})", {"[1]", R"({"a":1})", "null"}, {"[]", "{}", "1"});
  Check(R"({"not":{"const":{"a":1}},"type":"object"})", {"{}", R"({"a":2})", R"({"a":1,"b":1})"},
        {R"({"a":1})"});
}

// Case C111.
TEST(JsonSchema, References) {
  const std::string list =
      R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","required":["next"],
          "properties":{"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}}}}})";
  std::string deep = "null";
  for (int i = 0; i < 50; ++i) deep = R"({"next":)" + deep + "}";
  Check(list, {deep}, {"null", "{}", R"({"next":1})", deep.substr(1)});
  Check(R"({"properties":{"children":{"items":{"$ref":"#"},"type":"array"}},"type":"object"})",
        {R"({"children":[{"children":[]},{}]})"}, {R"({"children":[1]})"});
  Check(R"({"$ref":"#/$defs/a~1b","$defs":{"a/b":{"$ref":"#/$defs/c~0%25"},"c~%":{"enum":[1]}}})",
        {"1"}, {"2", "null"});
  Check(R"({"$ref":"#/$defs/e","maximum":1,"$defs":{"e":{"enum":[1,2]}}})", {"1"}, {"2", "0"});
  Check(R"({"$id":"http://x.test/a.json","$ref":"b.json#q","$defs":{"b":{"$id":"b.json",
            "$defs":{"z":{"$anchor":"q","type":"null"}}}}})",
        {"null"}, {"1"});
  EXPECT_THAT(ErrorOf(
                  R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},
                      "$ref":"#/$defs/a"})"),
              HasSubstr("refers to itself"));
  EXPECT_THAT(ErrorOf(R"({"$ref":"#/$defs/none"})"), HasSubstr("'#/$defs/none' leads nowhere"));
  EXPECT_THAT(ErrorOf(R"({"$ref":"http://x.test/s"})"), HasSubstr("nothing is fetched"));
  EXPECT_THAT(ErrorOf(R"({"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}})"),
              HasSubstr("no value satisfies"));
}

TEST(JsonSchema, LayoutAndBlanks) {
  Check("{\"type\":\"array\"}", {"[ 1 ,\t2\n]"}, {" []", "[] "});
  Check("{\"type\":\"array\"}", {" []\n", "[1, 2]"}, {"[1 2]"}, {.outer_blanks = true});
}

// One spelling of each value, in any order of members.
TEST(JsonSchema, CompactLayout) {
  Check("{}",
        {"[1,{\"a b\":2}]", R"({"b":-0.5,"a":[100,"x"]})", R"({"a":"é\n\u001f/","b":null})", "[]"},
        {"[1, 2]", "{\"a\" :1}", "[1.0]", "[-0]", "[1e2]", R"(["\u0061"])", R"(["\/"])",
         R"({"\u0061":1})", "{ }"},
        {.compact = true});
}

// What is written compactly is a text of the schema, and no other text is its value but one with
// the members in another order.
TEST(JsonSchema, CompactLayoutIsNarrower) {
  const std::uint64_t seed = 21;
  std::mt19937_64 random(seed);
  for (const char* schema :
       {"{}", R"({"type":"object","properties":{"a":{"type":"integer","minimum":-20},
                  "b\n":{"type":"string","maxLength":4},"c":{"multipleOf":0.25,"maximum":3}}})",
        R"({"type":"array","items":{"type":["number","string"],"minimum":0.5}})"}) {
    SCOPED_TRACE(std::string(schema) + " seed " + std::to_string(seed));
    Recognizer any(CompileJsonSchema(schema, {}).value());
    Recognizer compact(CompileJsonSchema(schema, {.compact = true}).value());
    for (int trial = 0; trial < 60; ++trial) {
      const std::string text = RandomText(compact, random, 40);
      if (!Accepts(compact, text)) continue;  // Cut off.
      EXPECT_TRUE(Accepts(any, text)) << text;
      const JsonValue value = ParseJson("test", text).value();
      EXPECT_EQ(Written(value), text);
    }
  }
}

// A name that the schema does not know may come twice; where that would matter, it is refused.
TEST(JsonSchema, RepeatedNames) {
  Check("{}", {R"({"x":1,"x":2})"}, {});
  Check(R"({"type":"object","minProperties":1})", {R"({"x":1,"x":2})"}, {"{}"});
  Check(R"({"type":"object","minProperties":3,"propertyNames":{"enum":["a","b","c"]}})",
        {R"({"c":1,"a":2,"b":3})"}, {R"({"a":1,"a":2,"b":3})", R"({"a":1,"b":2})"});
  Check(R"({"type":"object","minProperties":2,"required":["a"]})", {R"({"x":1,"a":2})"},
        {R"({"a":1,"a":2})", R"({"a":1})", R"({"x":1,"x":2})"});
  Check(R"({"type":"object","minProperties":2,"properties":{"a":{},"b":{}},
            "additionalProperties":false})",
        {R"({"b":1,"a":2})"}, {R"({"a":1,"a":2})"});
  EXPECT_THAT(ErrorOf(R"({"type":"object","minProperties":2})"), HasSubstr("names might repeat"));
  EXPECT_THAT(ErrorOf(R"({"not":{"additionalProperties":{"type":"null"}}})"),
              HasSubstr("names might repeat"));
  Check(R"({"type":"object","not":{"additionalProperties":false,"properties":{"a":{}}}})",
        {R"({"a":1,"x":1})", R"({"x":1,"x":2})"}, {R"({"a":1})", "{}"});
}

TEST(JsonSchema, Formats) {
  const auto format = [](const std::string& name) {
    return R"({"type":"string","format":")" + name + "\"}";
  };
  const JsonSchemaOptions on = {.assert_formats = true};
  Check(format("date"), {"\"x\""}, {"1"});
  Check(format("date"), {"\"2024-02-29\"", "\"2000-02-29\""},
        {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-04-31\"", "\"2024-1-1\""}, on);
  Check(format("time"),
        {"\"12:00:00Z\"", "\"23:59:60Z\"", "\"00:59:60.5+01:00\"", "\"08:30:06+00:20\""},
        {"\"12:00:60Z\"", "\"12:00:00\"", "\"24:00:00Z\"", "\"22:59:60+01:00\""}, on);
  Check(format("date-time"), {"\"1998-12-31T15:59:60.123-08:00\""}, {"\"1998-12-31 15:59:60Z\""},
        on);
  Check(format("uuid"), {"\"2EB8AA08-aa98-11ea-b4aa-73B441D16380\""}, {"\"2eb8aa08\""}, on);
  Check(format("email"), {"\"a.b+c@x.test\"", R"("\"j d\"@x.test")", "\"a@[127.0.0.1]\""},
        {"\"a\"", "\".a@x\"", "\"a..b@x\"", "\"a@-x\""}, on);
  Check(format("ipv4"), {"\"192.168.0.1\""}, {"\"256.0.0.1\"", "\"1.2.3\"", "\"01.2.3.4\""}, on);
  Check(format("uri"), {"\"http://x.test/a?b#c\"", "\"urn:a:b\"", "\"ldap://[2001:db8::7]/c?x\""},
        {"\"//x\"", "\"/a\"", "\"http://a b\"", "\"a\\\\b:c\"", "\"http:// x\""}, on);
  EXPECT_THAT(ErrorOf(format("hostname"), on), HasSubstr("'hostname' cannot be asserted"));
  EXPECT_FALSE(FormatRegex("regex"));
}

// Case C81: what cannot be enforced is refused, by name and place.
TEST(JsonSchema, RefusesWhatItCannotEnforce) {
  EXPECT_THAT(ErrorOf(R"({"properties":{"a":{"uniqueItems":true}}})"),
              HasSubstr("schema, at '/properties/a': the keyword 'uniqueItems'"));
  for (const char* keyword : {"unevaluatedProperties", "unevaluatedItems", "$dynamicRef"}) {
    EXPECT_THAT(ErrorOf(std::string("{\"") + keyword + "\":false}"), HasSubstr(keyword));
  }
  EXPECT_THAT(ErrorOf(R"({"contains":{},"maxContains":2})"), HasSubstr("maxContains"));
  EXPECT_THAT(ErrorOf(R"({"pattern":"("})"), HasSubstr("lacks its ')'"));
  EXPECT_THAT(ErrorOf(R"({"pattern":"(?<=a)b"})"), HasSubstr("lookbehind"));
  EXPECT_THAT(ErrorOf(R"({"type":"nonsense"})"), HasSubstr("'nonsense' is not one of"));
  EXPECT_THAT(ErrorOf(R"({"minLength":-1})"), HasSubstr("whole number"));
  EXPECT_THAT(ErrorOf(R"({"minLength":1.5})"), HasSubstr("whole number"));
  EXPECT_THAT(ErrorOf(R"({"multipleOf":0})"), HasSubstr("must be > 0"));
  EXPECT_THAT(ErrorOf(R"({"minimum":"1"})"), HasSubstr("must be a number"));
  EXPECT_THAT(ErrorOf(R"({"anyOf":[]})"), HasSubstr("at least one"));
  EXPECT_THAT(ErrorOf(R"({"required":[1]})"), HasSubstr("strings only"));
  EXPECT_THAT(ErrorOf(R"({"$schema":"http://x.test/meta"})"), HasSubstr("is not known"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("an object, true or false"));
  EXPECT_THAT(ErrorOf("{"), HasSubstr("this is not JSON"));
  EXPECT_THAT(ErrorOf(R"({"a":1,"a":2})"), HasSubstr("two members 'a'"));
  EXPECT_THAT(ErrorOf(std::string(60000, '[')), HasSubstr("more than 256 deep"));
  for (const char* nothing :
       {"false", R"({"type":"string","minLength":3,"maxLength":2})", R"({"enum":[]})",
        R"({"allOf":[{"type":"string"},{"type":"null"}]})",
        R"({"type":"integer","minimum":0.1,
        "maximum":0.9})",
        R"({"type":"object","required":["a"],"properties":{"a":false}})",
        R"({"type":"array","minItems":1,"items":false})", R"({"type":"string","pattern":"a^b"})"}) {
    EXPECT_THAT(ErrorOf(nothing), HasSubstr("no value satisfies")) << nothing;
  }
}

// Whatever is alive can end: no demand deep inside leads into a dead end.
TEST(JsonSchema, WhatIsAliveCanEnd) {
  const std::uint64_t seed = 11;
  std::mt19937_64 random(seed);
  for (
      const char* schema :
      {R"({"type":"object","properties":{"a":{"type":"integer","minimum":13,"maximum":17},
            "b":{"enum":["x","yy"]}},"required":["b"],"additionalProperties":false,
            "minProperties":2})",
       R"({"type":"array","contains":{"const":3},"items":{"type":"integer","maximum":3,"minimum":2},
            "maxItems":3})",
       R"({"type":"string","pattern":"^(aa|bbb)*$","minLength":4,"maxLength":5})",
       R"({"type":"object","patternProperties":{"^k":{"type":"null"}},"additionalProperties":false,
            "minProperties":1,"propertyNames":{"maxLength":3}})",
       R"({"not":{"additionalProperties":{"type":"null"}},"type":"object","maxProperties":1,
            "propertyNames":{"enum":["a","b"]}})"}) {
    SCOPED_TRACE(std::string(schema) + " seed " + std::to_string(seed));
    auto grammar = CompileJsonSchema(schema, {.compact = true});
    ASSERT_TRUE(grammar) << grammar.error().message;
    Recognizer recognizer(std::move(grammar).value());
    for (int trial = 0; trial < 8; ++trial) {
      const std::string text = RandomText(recognizer, random, 30);
      for (std::size_t length = 0; length < std::min<std::size_t>(text.size(), 25); length += 3) {
        const StateId state = recognizer.Step(recognizer.start(), text.substr(0, length));
        ASSERT_TRUE(CanEnd(recognizer, state, 200000)) << text.substr(0, length);
      }
    }
  }
}

TEST(SchemaReferences, PlacesAndTargets) {
  const JsonValue document =
      ParseJson("schema", R"({"$defs":{"a/b":{"$anchor":"x"}},"items":[{"$ref":"#x"}]})").value();
  const SchemaReferences references(document);
  const JsonValue* target = references.Resolve(document, "#/$defs/a~1b").value();
  EXPECT_EQ(references.PlaceOf(*target), "/$defs/a~1b");
  EXPECT_EQ(references.Resolve(document, "#x").value(), target);
  EXPECT_EQ(references.Resolve(document, "#").value(), &document);
  EXPECT_FALSE(references.Resolve(document, "#/items/7"));
  EXPECT_FALSE(references.Resolve(document, "other.json"));
}

TEST(SchemaShapes, DemandsAreNormalized) {
  EXPECT_EQ(Normalized({7, 5, 7, Positive(kTrueSchema), Negative(kFalseSchema)}), Demand({5, 7}));
  EXPECT_EQ(Normalized({8, 9, 4}), kImpossible);
  EXPECT_EQ(Normalized({Negative(kTrueSchema)}), kImpossible);
  EXPECT_EQ(Both({4}, {6}), Demand({4, 6}));
}

TEST(SchemaNodes, ArraysWithDemandsOnSomeItem) {
  ArrayPlan plan;
  plan.items = {
      {{.node = 0, .satisfies = 0, .usable = true}, {.node = 1, .satisfies = 1, .usable = true}}};
  plan.some = 1;
  plan.max = 2;
  EXPECT_TRUE(CanFinish(plan, 0, 0));
  EXPECT_TRUE(CanFinish(plan, 1, 0));
  EXPECT_FALSE(CanFinish(plan, 2, 0));
  EXPECT_TRUE(CanFinish(plan, 2, 1));
  plan.items[0][1].usable = false;
  EXPECT_FALSE(CanFinish(plan, 0, 0));
}

TEST(JsonSchema, NamesThePlaceThatNothingSatisfies) {
  EXPECT_THAT(ErrorOf(R"({"type":"object","required":["a"],"properties":{"a":{"type":"object",
                  "required":["b"],"properties":{"b":{"type":"string","minLength":3,
                  "maxLength":1}}},"c":{"type":"integer","minimum":2,"maximum":1}}})"),
              HasSubstr("at '/properties/a/properties/b'"));
  EXPECT_THAT(ErrorOf(R"({"type":"array","minItems":1,"items":{"enum":[]}})"),
              HasSubstr("at '/items'"));
  EXPECT_THAT(ErrorOf(R"({"type":"array","minItems":1,"items":{"const":1,"type":"null"}})"),
              HasSubstr("at '/items'"));
  // Two that contradict each other: none of them alone.
  EXPECT_EQ(ErrorOf(R"({"allOf":[{"type":"null"},{"type":"string"}]})"),
            "schema: no value satisfies it");
}

// Where few names are possible each counts once, so that what is demanded can be written.
TEST(JsonSchema, FewNamesComeOnceEach) {
  const std::string names = R"({"type":"object","propertyNames":{"enum":["a","b"]},)";
  Check(names + R"("minProperties":2})", {R"({"a":1,"b":1})", R"({"b":1,"a":1})"},
        {R"({"a":1,"a":1})", R"({"a":1})"});
  EXPECT_THAT(ErrorOf(names + R"("minProperties":3})"), HasSubstr("no value satisfies"));
  const std::string pattern =
      R"({"type":"object","patternProperties":{"^[xy]$":{}},"additionalProperties":false,)";
  Check(pattern + R"("minProperties":2})", {R"({"x":1,"y":2})"}, {R"({"x":1,"x":2})"});
  EXPECT_THAT(ErrorOf(pattern + R"("minProperties":3})"), HasSubstr("no value satisfies"));
}

TEST(CharDfa, FewStringsAreAllOfThem) {
  TermPool pool;
  const auto few = [&](TermId term, std::size_t most) {
    return FewStrings(DfaOfTerm(pool, term).value(), most);
  };
  const TermId words = pool.Alternate(pool.Text("春"), pool.Text("ab"));
  EXPECT_THAT(few(words, 2).value(), testing::UnorderedElementsAre("春", "ab"));
  EXPECT_FALSE(few(words, 1));
  EXPECT_FALSE(few(pool.Repeat(pool.Text("a"), 0, kNoMaximum), 100));
  EXPECT_EQ(few(pool.Repeat(pool.Text("a"), 0, 9), 10).value().size(), 10u);
  EXPECT_TRUE(FewStrings(CharDfa(), 0).value().empty());
}

// Each way to fill an object: what may come next against trying to finish after it.
TEST(SchemaNodes, WhatMayComeCanBeFinishedAfter) {
  const std::uint64_t seed = 77;
  std::mt19937_64 random(seed);
  SCOPED_TRACE(seed);
  for (int trial = 0; trial < 3000; ++trial) {
    ObjectPlan plan;
    plan.some = static_cast<SomeMask>(random() % 4);
    const std::size_t names = random() % 4, classes = names + random() % 2;
    for (std::size_t c = 0; c < classes; ++c) {
      MemberClass member;
      if (c < names) {
        member.name = static_cast<int>(c);
        plan.names.push_back(std::string(1, static_cast<char>('a' + c)));
        plan.required.push_back(random() % 2 == 0);
        plan.class_of_name.push_back(static_cast<int>(c));
      }
      for (std::size_t o = random() % 3; o-- > 0;) {
        member.options.push_back({.node = 0,
                                  .satisfies = static_cast<SomeMask>(random() & plan.some),
                                  .usable = random() % 4 != 0});
      }
      plan.classes.push_back(member);
    }
    plan.min = random() % 4;
    if (random() % 2 == 0) plan.max = plan.min + random() % 3;
    ObjectProgress progress = NoProgress(plan);
    for (int step = 0; step < 5; ++step) {
      const auto may = MayCome(plan, progress);
      for (std::size_t c = 0; c < classes; ++c) {
        const MemberClass& member = plan.classes[c];
        bool wanted = false;
        if (progress.count < plan.max &&
            (member.name < 0 || (progress.seen[0] >> member.name & 1) == 0)) {
          for (const ValueOption& option : member.options) {
            wanted =
                wanted || (option.usable && CanFinish(plan, After(plan, progress, member, option)));
          }
        }
        ASSERT_EQ((may[0] >> c & 1) != 0, wanted) << "trial " << trial << " class " << c;
      }
      if (classes == 0) break;
      const MemberClass& member = plan.classes[random() % classes];
      if (member.options.empty() ||
          (member.name >= 0 && (progress.seen[0] >> member.name & 1) != 0)) {
        continue;
      }
      progress = After(plan, progress, member, member.options[0]);
    }
  }
}

// One step of an object costs time in proportion to its names; all pairs of steps and names did
// not end.
TEST(JsonSchema, ThousandsOfRequiredMembers) {
  std::string properties, required, text;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "\"m" + std::to_string(i) + "\"";
    const char* comma = i == 0 ? "" : ",";
    properties += comma + name + R"(:{"type":"integer"})";
    required += comma + name;
    text += comma + name + ":1";
  }
  Check(R"({"type":"object","properties":{)" + properties + R"(},"required":[)" + required + "]}",
        {"{" + text + "}"}, {"{" + text.substr(0, text.rfind(',')) + "}"});
}

TEST(JsonValue, KeepsNumbersAsWritten) {
  const JsonValue value = ParseJson("test", R"({"a":[1.50,-0,12345678901234567890123]})").value();
  const JsonValue* a = value.Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->items[0].text, "1.50");
  EXPECT_EQ(a->items[2].text, "12345678901234567890123");
  EXPECT_EQ(value.Find("b"), nullptr);
  EXPECT_FALSE(ParseJson("test", "[1] x"));
  EXPECT_FALSE(ParseJson("test", ""));
}

}  // namespace
}  // namespace kvasir::constraints
