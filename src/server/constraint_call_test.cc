#include "server/constraint_call.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server {
namespace {

using constraints::ConstraintKind;

ApiResult<CompletionCall> Read(const std::string& more) {
  const auto parsed = ParseBody("{" + more + "}");
  EXPECT_TRUE(parsed) << more;
  CompletionCall call;
  const auto read = ReadConstraint(FieldReader(parsed.value()), call);
  if (!read) return read.error();
  return call;
}

TEST(ConstraintCall, EachKind) {
  EXPECT_FALSE(Read("").value().constraint);
  EXPECT_EQ(Read(R"("regex":"a+")").value().constraint->kind, ConstraintKind::kRegex);
  EXPECT_EQ(Read(R"("grammar":"root ::= \"a\"")").value().constraint->kind,
            ConstraintKind::kGrammar);
  EXPECT_EQ(Read(R"("choice":["yes","no"])").value().constraint->texts.size(), 2u);
  EXPECT_EQ(Read(R"("response_format":{"type":"json_object"})").value().constraint->kind,
            ConstraintKind::kJsonSchema);
  EXPECT_FALSE(Read(R"("response_format":{"type":"text"},"regex":null)").value().constraint);
}

TEST(ConstraintCall, SchemasKeepTheirText) {
  const auto call =
      Read(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,)"
           R"("schema":{"type":"number","maximum":1.50}}})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call.value().constraint->texts[0], R"({"type":"number","maximum":1.50})");
}

TEST(ConstraintCall, Verse) {
  const auto call = Read(
      R"("verse":{"form":"qijue","tones":true,"rhyme":true,"rhyme_group":"东",)"
      R"("without":["rescue"]})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call.value().verse->form, "qijue");
  EXPECT_TRUE(call.value().verse->rules.tones && call.value().verse->rules.rhyme);
  EXPECT_EQ(call.value().verse->rules.rhyme_group, "东");
  EXPECT_EQ(call.value().verse->rules.without, (std::vector<std::string>{"rescue"}));
  const auto acrostic = Read(R"("verse":{"form":"acrostic","heads":"春花","chars":5})");
  ASSERT_TRUE(acrostic);
  EXPECT_EQ(acrostic.value().verse->chars, 5u);
}

TEST(ConstraintCall, RefusalsNameTheField) {
  const auto refused = [](const std::string& more, const std::string& param) {
    const auto call = Read(more);
    ASSERT_FALSE(call) << more;
    EXPECT_EQ(call.error().param, param) << more;
  };
  refused(R"("regex":"a","grammar":"b")", "grammar");
  refused(R"("regex":"a","response_format":{"type":"json_object"})", "regex");
  refused(R"("regex":1)", "regex");
  refused(R"("choice":[])", "choice");
  refused(R"("response_format":"json")", "response_format");
  refused(R"("response_format":{})", "response_format.type");
  refused(R"("response_format":{"type":"xml"})", "response_format.type");
  refused(R"("response_format":{"type":"json_schema"})", "response_format.json_schema");
  refused(R"("response_format":{"type":"json_object","x":1})", "response_format.x");
  refused(R"("verse":"qijue")", "verse");
  refused(R"("verse":{})", "verse.form");
  refused(R"("verse":{"form":"acrostic"})", "verse.heads");
  refused(R"("verse":{"form":"acrostic","heads":"春","chars":6})", "verse.chars");
  refused(R"("verse":{"form":"qijue","chars":7})", "verse.chars");
  refused(R"("verse":{"form":"qijue","tone":true})", "verse.tone");
}

}  // namespace
}  // namespace kvasir::server
