#include "formats/gguf_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/raw_gguf.h"

namespace kvasir::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class GgufMetadataTest : public testing::Test {
 protected:
  template <typename T>
  void Add(std::string_view key, GgufValueType type, T value) {
    raw_.Key(key, type).Number(value);
    ++count_;
  }
  template <typename T>
  void AddArray(std::string_view key, GgufValueType type, std::vector<T> values) {
    raw_.Key(key, GgufValueType::kArray).Type(type).template Number<std::uint64_t>(values.size());
    for (const T value : values) raw_.Number(value);
    ++count_;
  }
  void AddString(std::string_view key, std::string_view value) {
    raw_.Key(key, GgufValueType::kString).String(value);
    ++count_;
  }
  void AddStrings(std::string_view key, const std::vector<std::string>& values) {
    raw_.Key(key, GgufValueType::kArray).Type(GgufValueType::kString);
    raw_.Number<std::uint64_t>(values.size());
    for (const std::string& value : values) raw_.String(value);
    ++count_;
  }
  void Read() {
    ByteCursor in(raw_.bytes(), "m.gguf");
    auto read = GgufMetadata::Read(in, count_);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(in.left(), 0u);
    metadata_ = std::move(read).value();
  }
  std::string TextOf(std::string_view key) { return metadata_.Find(key)->ValueText(); }

  RawGguf raw_;
  std::uint64_t count_ = 0;
  GgufMetadata metadata_;
};

TEST_F(GgufMetadataTest, AnyIntegerTypeThatFits) {
  Add<std::uint8_t>("u8", GgufValueType::kUint8, 255);
  Add<std::int8_t>("i8", GgufValueType::kInt8, -128);
  Add<std::uint16_t>("u16", GgufValueType::kUint16, 65535);
  Add<std::int16_t>("i16", GgufValueType::kInt16, 300);
  Add<std::uint32_t>("u32", GgufValueType::kUint32, 4294967295u);
  Add<std::int32_t>("i32", GgufValueType::kInt32, -1);
  Add<std::uint64_t>("u64", GgufValueType::kUint64, ~std::uint64_t{0});
  Add<std::int64_t>("i64", GgufValueType::kInt64, std::numeric_limits<std::int64_t>::min());
  Read();
  EXPECT_EQ(metadata_.GetUint("u8").value(), 255u);
  EXPECT_EQ(metadata_.GetUint("u16").value(), 65535u);
  EXPECT_EQ(metadata_.GetUint("i16").value(), 300u);
  EXPECT_EQ(metadata_.GetUint("u32").value(), 4294967295u);
  EXPECT_EQ(metadata_.GetUint("u64").value(), ~std::uint64_t{0});
  EXPECT_EQ(metadata_.GetInt("i8").value(), -128);
  EXPECT_EQ(metadata_.GetInt("u32").value(), 4294967295);
  EXPECT_EQ(metadata_.GetInt("i64").value(), std::numeric_limits<std::int64_t>::min());
  EXPECT_FALSE(metadata_.GetInt("u64").has_value());
  // Cases C137, C139: a negative id or count is not a huge one.
  EXPECT_EQ(metadata_.GetUint("i32").error().message,
            "m.gguf: metadata 'i32' is int32 -1, must be an integer >= 0");
  EXPECT_FALSE(metadata_.GetUint("i8").has_value());
  EXPECT_FALSE(metadata_.GetUint("i64").has_value());
}

// Case C137: an id that is a string; and every other mix of types.
TEST_F(GgufMetadataTest, WrongTypeIsAnErrorAbsentIsNot) {
  AddString("text", "2");
  Add<float>("float", GgufValueType::kFloat32, 2.0f);
  Add<double>("double", GgufValueType::kFloat64, 0.1);
  Add<std::uint8_t>("bool", GgufValueType::kBool, 1);
  Add<std::uint32_t>("uint", GgufValueType::kUint32, 1);
  AddArray<std::uint32_t>("array", GgufValueType::kUint32, {1});
  Read();
  EXPECT_THAT(metadata_.GetUint("text").error().message, HasSubstr("is string \"2\", must be"));
  EXPECT_THAT(metadata_.OptionalUint("text").error().message, HasSubstr("must be an integer"));
  EXPECT_EQ(metadata_.GetUint("none").error().message,
            "m.gguf: metadata 'none' is missing, must be an integer >= 0");
  EXPECT_EQ(metadata_.OptionalUint("none").value(), std::nullopt);
  EXPECT_EQ(metadata_.OptionalUint("uint").value(), 1u);
  EXPECT_FALSE(metadata_.GetUint("float").has_value());
  EXPECT_FALSE(metadata_.GetUint("bool").has_value());
  EXPECT_FALSE(metadata_.GetUint("array").has_value());
  EXPECT_EQ(metadata_.GetFloat("float").value(), 2.0);
  EXPECT_EQ(metadata_.GetFloat("double").value(), 0.1);
  EXPECT_FALSE(metadata_.GetFloat("uint").has_value());
  EXPECT_EQ(metadata_.GetBool("bool").value(), true);
  EXPECT_FALSE(metadata_.GetBool("uint").has_value());
  EXPECT_EQ(metadata_.GetString("text").value(), "2");
  EXPECT_FALSE(metadata_.GetString("uint").has_value());
  EXPECT_TRUE(metadata_.Has("uint"));
  EXPECT_FALSE(metadata_.Has("none"));
}

// Case C139: what no model can use is still told as it is, for the loader to refuse by key.
TEST_F(GgufMetadataTest, NonFiniteFloatsComeThrough) {
  Add<float>("nan", GgufValueType::kFloat32, std::numeric_limits<float>::quiet_NaN());
  Add<float>("inf", GgufValueType::kFloat32, -std::numeric_limits<float>::infinity());
  Read();
  EXPECT_TRUE(std::isnan(metadata_.GetFloat("nan").value()));
  EXPECT_TRUE(std::isinf(metadata_.GetFloat("inf").value()));
  EXPECT_EQ(TextOf("nan"), "nan");
  EXPECT_EQ(TextOf("inf"), "-inf");
}

TEST_F(GgufMetadataTest, Arrays) {
  AddStrings("words", {"春", "", "\xFF"});
  AddArray<float>("floats", GgufValueType::kFloat32, {1.5f, -0.0f});
  AddArray<std::int32_t>("ints", GgufValueType::kInt32, {-1, 6});
  AddArray<std::uint64_t>("big", GgufValueType::kUint64, {1, ~std::uint64_t{0}});
  AddArray<double>("doubles", GgufValueType::kFloat64, {1.0});
  AddStrings("no words", {});
  AddArray<std::int16_t>("no ints", GgufValueType::kInt16, {});
  Read();
  EXPECT_THAT(metadata_.GetStringArray("words").value(), ElementsAre("春", "", "\xFF"));
  EXPECT_THAT(metadata_.GetFloatArray("floats").value(), ElementsAre(1.5f, -0.0f));
  EXPECT_THAT(metadata_.GetIntArray("ints").value(), ElementsAre(-1, 6));
  EXPECT_TRUE(metadata_.GetStringArray("no words").value().empty());
  EXPECT_TRUE(metadata_.GetIntArray("no ints").value().empty());
  EXPECT_FALSE(metadata_.GetIntArray("no words").has_value());
  EXPECT_FALSE(metadata_.GetIntArray("big").has_value());
  EXPECT_FALSE(metadata_.GetIntArray("floats").has_value());
  EXPECT_FALSE(metadata_.GetFloatArray("ints").has_value());
  EXPECT_THAT(metadata_.GetFloatArray("doubles").error().message,
              HasSubstr("is array of 1 float64 [1], must be an array of float32"));
  EXPECT_FALSE(metadata_.GetStringArray("ints").has_value());
  EXPECT_EQ(metadata_.OptionalFloatArray("none").value(), std::nullopt);
}

TEST_F(GgufMetadataTest, ValuesForPeople) {
  AddString("name", "say \"春\"\n\x1B[31m\xC3");
  AddString("long", std::string(1000, 'x'));
  Add<float>("eps", GgufValueType::kFloat32, 1e-5f);
  Add<std::uint8_t>("no", GgufValueType::kBool, 0);
  AddArray<std::uint8_t>("many", GgufValueType::kUint8, std::vector<std::uint8_t>(100, 7));
  AddStrings("words", {"<unk>", "a"});
  Read();
  EXPECT_EQ(TextOf("name"), "\"say \\\"春\\\"\\n\\u001B[31m\\xC3\"");
  EXPECT_EQ(TextOf("long"), "\"" + std::string(64, 'x') + "…\"");
  EXPECT_EQ(TextOf("eps"), "1e-05");
  EXPECT_EQ(TextOf("no"), "false");
  EXPECT_EQ(TextOf("many"), "[7, 7, 7, 7, 7, 7, 7, 7, … 92 more]");
  EXPECT_EQ(TextOf("words"), "[\"<unk>\", \"a\"]");
  EXPECT_EQ(metadata_.Find("many")->TypeText(), "array of 100 uint8");
  EXPECT_EQ(metadata_.Find("eps")->TypeText(), "float32");
  std::vector<std::string_view> keys;
  for (const GgufEntry& entry : metadata_.entries()) keys.push_back(entry.key);
  EXPECT_THAT(keys, ElementsAre("name", "long", "eps", "no", "many", "words"));
}

}  // namespace
}  // namespace kvasir::formats
