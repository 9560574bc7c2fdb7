#include "formats/safetensors_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "formats/safetensors_writer.h"

namespace kvasir::formats {
namespace {

using tensor::DType;
using ::testing::HasSubstr;

// A file of this header and so many bytes 0, 1, 2, … behind it.
std::string FileOf(const std::string& header, std::size_t data_bytes) {
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof(length));
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

auto Parse(const std::string& file) {
  return SafetensorsFile::Parse(std::as_bytes(std::span(file)), "f");
}

constexpr const char* kHeader =
    R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},"__metadata__":{"x":"y"},)"
    R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("mask":{"dtype":"BOOL","shape":[],"data_offsets":[20,21]},)"
    R"("none":{"dtype":"I64","shape":[0,5],"data_offsets":[21,21]}}  )";

TEST(SafetensorsReader, ReadsTensorsInOrderOfTheirData) {
  const std::string bytes = FileOf(kHeader, 21);
  const auto file = Parse(bytes).value();
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  const SafetensorsTensor& b = *file.Find("b");
  EXPECT_EQ(b.shape, (tensor::Shape{2, 3}));
  EXPECT_EQ(b.dtype, DType::kBF16);
  EXPECT_EQ(b.data.size(), 12u);
  EXPECT_EQ(static_cast<int>(b.data[0]), 8);
  EXPECT_EQ(file.Find("mask")->dtype, std::nullopt);
  EXPECT_EQ(file.Find("mask")->type, "BOOL");
  EXPECT_EQ(file.Find("mask")->shape.rank(), 0u);
  EXPECT_TRUE(file.Find("none")->data.empty());
  EXPECT_EQ(file.Find("__metadata__"), nullptr);
}

TEST(SafetensorsReader, EveryPrefixIsAnError) {
  const std::string bytes = FileOf(kHeader, 21);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto read = Parse(bytes.substr(0, size));
    ASSERT_FALSE(read.has_value()) << size;
    EXPECT_THAT(read.error().message, HasSubstr("f: "));
  }
}

TEST(SafetensorsReader, EveryChangedByteIsReadOrRefused) {
  const std::string bytes = FileOf(kHeader, 21);
  for (std::size_t i = 0; i < bytes.size() - 21; ++i) {
    for (const int flip : {1, 2, 16, 128}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      const auto read = Parse(changed);
      if (read) continue;
      EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
    }
  }
}

TEST(SafetensorsReader, RefusesWhatTheFormatForbids) {
  const auto refused = [](const std::string& header, std::size_t data, const std::string& why) {
    const auto read = Parse(FileOf(header, data));
    ASSERT_FALSE(read.has_value()) << header;
    EXPECT_EQ(read.error().code, base::ErrorCode::kBadData);
    EXPECT_THAT(read.error().message, HasSubstr(why));
  };
  const std::string one = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  refused("{\"a\":" + one + ",\"b\":" + one + "}", 4, "begins at byte 0 of the data");
  refused("{\"a\":" + one + "}", 5, "1 bytes follow");
  refused("{\"a\":" + one + "}", 3, "data_offsets are 0 to 4");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})", 5, "begins at byte 1");
  refused(R"({"a":{"dtype":"F32","shape":[9223372036854775808,2],"data_offsets":[0,0]}})", 0,
          "does not take the 0 bytes");
  refused(R"({"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,4]}})", 4, "dtype is 'Q4'");
  refused(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[0,4]}})", 4, "0 to 4 whole");
  refused(R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "shape must be");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"z":0}})", 4, "'z' is no field");
  refused(R"({"a":3})", 0, "it is 3");
  refused("{\"\":" + one + "}", 4, "its name has 0 bytes");
  refused(R"({"__metadata__":[]})", 0, "__metadata__");
}

TEST(SafetensorsReader, HostileLengthsAreSeenBeforeMemoryIsTaken) {
  std::string file(64, ' ');
  for (const std::uint64_t length :
       {~std::uint64_t{0}, std::uint64_t{57}, std::uint64_t{1} << 40}) {
    std::memcpy(file.data(), &length, sizeof(length));
    EXPECT_THAT(Parse(file).error().message, HasSubstr("56 are left"));
  }
  const std::uint64_t swapped = __builtin_bswap64(56);
  std::memcpy(file.data(), &swapped, sizeof(swapped));
  EXPECT_THAT(Parse(file).error().message, HasSubstr("56, is big-endian"));
}

}  // namespace
}  // namespace kvasir::formats
