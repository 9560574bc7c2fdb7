#include "server/parameter_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace kvasir::server {
namespace {

ApiResult<void> Check(const std::string& body, bool chat) {
  const auto parsed = ParseBody(body);
  EXPECT_TRUE(parsed);
  return CheckParameters(parsed.value(), chat);
}

TEST(ParameterTable, IsSortedAndSaysSomethingOfEach) {
  const auto table = Parameters();
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const Parameter& p : table) {
    EXPECT_FALSE(p.completions == Handling::kUnknown && p.chat == Handling::kUnknown) << p.name;
  }
}

TEST(ParameterTable, UnknownOnesAreRefusedByName) {
  const auto result = Check(R"({"model":"m","temprature":1})", true);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().param, "temprature");
  EXPECT_EQ(result.error().code, "unknown_parameter");
  EXPECT_FALSE(Check(R"({"messages":[]})", false));
  EXPECT_FALSE(Check(R"({"prompt":""})", true));
}

TEST(ParameterTable, OpenAisOwnAreIgnoredUnlessTheyAskForMore) {
  EXPECT_TRUE(
      Check(R"({"metadata":{},"store":true,"service_tier":"auto","verbosity":"low"})", true));
  EXPECT_TRUE(Check(R"({"tools":null})", true));
  const auto tools = Check(R"({"tools":[]})", true);
  ASSERT_FALSE(tools);
  EXPECT_EQ(tools.error().code, "unsupported_parameter");
  EXPECT_FALSE(Check(R"({"suffix":"x"})", false));
}

}  // namespace
}  // namespace kvasir::server
