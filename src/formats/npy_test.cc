#include "formats/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/faulty_env.h"

namespace kvasir::formats {
namespace {

using tensor::Shape;
using testing::HasSubstr;

constexpr std::string_view kGoodDict =
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

// Version 1.0 with this header text (no padding: readers need none) and so many data bytes.
std::string Npy(std::string_view dict, std::size_t data_bytes = 24,
                std::string_view version = {"\1\0", 2}) {
  std::string bytes = "\x93NUMPY" + std::string(version);
  const std::size_t length_bytes = version[0] == 1 ? 2 : 4;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    bytes += static_cast<char>((dict.size() + 1) >> (8 * i) & 0xFF);
  }
  return bytes.append(dict).append("\n").append(std::string(data_bytes, '\0'));
}

base::Result<NpyF32> Parse(std::string_view text) {
  return ParseNpyF32(std::as_bytes(std::span(text.data(), text.size())), "a.npy");
}

std::string ErrorOf(std::string_view text) {
  const auto array = Parse(text);
  if (array) return "";
  EXPECT_EQ(array.error().code, base::ErrorCode::kBadData);
  EXPECT_THAT(array.error().message, testing::StartsWith("a.npy: "));
  return array.error().message;
}

class NpyTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/npy_test_" + std::to_string(getpid());
    ASSERT_TRUE(base::Env::Default().MakeDirectories(directory_).has_value());
    path_ = directory_ + "/a.npy";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Read() { return std::string(base::Env::Default().Map(path_).value()->text()); }
  std::string directory_, path_;
};

TEST_F(NpyTest, HeaderIsWhatNumpyWrites) {
  const std::vector<float> values = {1.0f, -2.0f, 0.0f, 3.0f, 4.0f, 5.0f};
  const auto header = [&](const Shape& shape) {
    EXPECT_TRUE(WriteNpyF32(base::Env::Default(), path_, shape, values).has_value());
    const std::string bytes = Read();
    EXPECT_EQ(bytes.size(), 128u + 24u);
    EXPECT_EQ(bytes.substr(0, 10), std::string_view("\x93NUMPY\1\0\x76\0", 10));
    EXPECT_EQ(bytes[127], '\n');
    const std::string text = bytes.substr(10, 117);
    return text.substr(0, text.find_last_not_of(' ') + 1);
  };
  EXPECT_EQ(header({2, 3}), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  EXPECT_EQ(header({6}), "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }");
  EXPECT_EQ(header({1, 2, 1, 3}),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1, 3), }");
  EXPECT_EQ(Read().substr(128, 8), std::string_view("\0\0\x80\x3F\0\0\0\xC0", 8));
}

TEST_F(NpyTest, RoundTrip) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 5}, Shape{2, 0, 4}, Shape{2, 3, 4, 5}}) {
    std::vector<float> values(*shape.ElementCount());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.25f * static_cast<float>(i);
    ASSERT_TRUE(WriteNpyF32(base::Env::Default(), path_, shape, values).has_value());
    const auto array = ReadNpyF32(base::Env::Default(), path_);
    ASSERT_TRUE(array.has_value()) << array.error().message;
    EXPECT_EQ(array.value().shape, shape);
    EXPECT_EQ(array.value().values, values);
  }
  const auto wrong = WriteNpyF32(base::Env::Default(), path_, Shape{2}, std::vector<float>(3));
  EXPECT_THAT(wrong.error().message, HasSubstr("shape [2] was given 3 values"));
}

TEST_F(NpyTest, ReadsWhatOthersMayWrite) {
  EXPECT_EQ(Parse(Npy(kGoodDict)).value().shape, (Shape{2, 3}));
  EXPECT_EQ(ErrorOf(Npy(kGoodDict, 24, {"\2\0", 2})), "");
  EXPECT_EQ(ErrorOf(Npy(kGoodDict, 24, {"\3\0", 2})), "");
  EXPECT_EQ(ErrorOf(Npy("{\"shape\":(6,),'fortran_order':False,'descr':'<f4'}   ")), "");
}

TEST_F(NpyTest, HostileHeadersAreErrors) {
  const auto dict = [](std::string_view text) { return ErrorOf(Npy(text)); };
  const auto shape = [&](std::string_view text) {
    return dict("{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(text) + ", }");
  };
  EXPECT_THAT(dict("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"),
              HasSubstr("the elements are '<f8', read is '<f4' only"));
  EXPECT_THAT(dict("{'descr': '>f4', 'fortran_order': False, 'shape': (6,), }"),
              HasSubstr("'>f4'"));
  EXPECT_THAT(dict("{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }"),
              HasSubstr("must be False"));
  EXPECT_THAT(dict("{'descr': '<f4', 'shape': (6,)}"), HasSubstr("must have 'descr'"));
  EXPECT_THAT(dict("{'descr': '<f4', 'descr': '<f4', 'shape': (6,)}"), HasSubstr("once each"));
  EXPECT_THAT(dict("{'extra': 'x'}"), HasSubstr("the key 'extra'"));
  EXPECT_THAT(dict(std::string(kGoodDict) + "x"), HasSubstr("text follows"));
  EXPECT_NE(dict(""), "");
  EXPECT_NE(dict("{"), "");
  EXPECT_NE(dict("{'descr"), "");
  EXPECT_NE(dict("{'descr': "), "");
  EXPECT_NE(dict("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}"), "");
  EXPECT_THAT(shape("(18446744073709551616,)"), HasSubstr("2^64 or more"));
  EXPECT_THAT(shape("(4611686018427387904, 4)"), HasSubstr("needs 2^64 or more"));
  EXPECT_THAT(shape("(4611686018427387904,)"), HasSubstr("needs 2^64 or more"));
  EXPECT_THAT(shape("(1, 1, 1, 1, 6)"), HasSubstr("more than 4 dimensions"));
  EXPECT_THAT(shape("(-6,)"), HasSubstr("integer >= 0"));
  EXPECT_THAT(shape("(6)"), HasSubstr("must be a tuple"));
  EXPECT_THAT(shape("(,)"), HasSubstr("integer >= 0"));
  EXPECT_THAT(shape("(2, 4)"), HasSubstr("24 bytes of data follow, shape [2, 4]"));
  EXPECT_THAT(ErrorOf(Npy(kGoodDict, 25)), HasSubstr("25 bytes of data"));
  EXPECT_THAT(ErrorOf(Npy(kGoodDict, 24, {"\4\0", 2})), HasSubstr("version 4.0"));
  EXPECT_THAT(ErrorOf(Npy(kGoodDict, 24, {"\1\1", 2})), HasSubstr("version 1.1"));
  EXPECT_THAT(ErrorOf("PK\3\4 not numpy"), HasSubstr("must begin"));
}

TEST_F(NpyTest, EveryPrefixIsAnErrorAndNoChangedByteCrashes) {
  const std::string good = Npy(kGoodDict);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(ErrorOf(std::string(good, 0, size)), "") << size;
  }
  for (std::size_t at = 0; at < good.size() - 24; ++at) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      const auto array = Parse(bytes);
      if (array) {
        EXPECT_EQ(array.value().values.size(), 6u);
      }
    }
  }
}

TEST_F(NpyTest, OldFileSurvivesEveryFault) {
  const std::vector<float> values = {1.0f};
  ASSERT_TRUE(WriteNpyF32(base::Env::Default(), path_, Shape{1}, values).has_value());
  const std::string old = Read();
  for (std::uint64_t i = 0; i < 5; ++i) {
    base::FaultyEnv faulty(base::Env::Default());
    faulty.FailOperation(i);
    EXPECT_FALSE(WriteNpyF32(faulty, path_, Shape{0}, {}).has_value()) << i;
    EXPECT_EQ(Read(), old);
  }
}

// A file that NumPy wrote, if it is there: read, and written again to the same bytes.
TEST_F(NpyTest, ReferenceLogits) {
  base::Env& env = base::Env::Default();
  const std::string reference = KVASIR_SOURCE_DIR "/../shared/reference/logits.npy";
  if (!env.Exists(reference)) GTEST_SKIP() << "no reference logits here";
  const auto array = ReadNpyF32(env, reference);
  ASSERT_TRUE(array.has_value()) << array.error().message;
  EXPECT_EQ(array.value().shape, (Shape{24, 6915}));
  ASSERT_TRUE(WriteNpyF32(env, path_, array.value().shape, array.value().values).has_value());
  EXPECT_TRUE(Read() == env.Map(reference).value()->text());
}

}  // namespace
}  // namespace kvasir::formats
