#include "formats/safetensors_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/faulty_env.h"
#include "formats/safetensors_reader.h"
#include "tensor/convert.h"

namespace kvasir::formats {
namespace {

using tensor::DType;

SafetensorsWriter Small() {
  const std::vector<float> values = {1, -2};
  SafetensorsWriter writer;
  writer.Add("x\"y", {2}, DType::kF32, tensor::ConvertFromF32(DType::kF32, values));
  writer.Add("h", {1, 2}, DType::kF16, tensor::ConvertFromF32(DType::kF16, values));
  return writer;
}

TEST(SafetensorsWriter, WritesTheFormatsBytes) {
  const auto bytes = Small().Encode();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"x\"y":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("h":{"dtype":"F16","shape":[1,2],"data_offsets":[8,12]}})";
  EXPECT_EQ(text.substr(8, header.size()), header);
  const std::size_t length = static_cast<unsigned char>(text[0]);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(text.substr(1, 7), std::string(7, '\0'));
  EXPECT_EQ(text.substr(8 + header.size(), length - header.size()),
            std::string(length - header.size(), ' '));
  EXPECT_EQ(text.substr(8 + length), std::string("\0\0\x80\x3f\0\0\0\xc0\0\x3c\0\xc0", 12));
}

TEST(SafetensorsWriter, IsReadBack) {
  const auto bytes = Small().Encode();
  const auto file = SafetensorsFile::Parse(bytes, "f").value();
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.Find("x\"y")->shape, tensor::Shape{2});
  EXPECT_EQ(file.Find("h")->dtype, DType::kF16);
  EXPECT_EQ(Small().Encode(), bytes);
}

TEST(SafetensorsWriter, AFullDiskLeavesTheOldFile) {
  const std::string path = testing::TempDir() + "/writer_test_" + std::to_string(getpid());
  base::Env& env = base::Env::Default();
  ASSERT_TRUE(base::WriteFileAtomic(env, path, std::string_view("old")).has_value());
  base::FaultyEnv faulty(env);
  faulty.LimitBytes(40);
  EXPECT_FALSE(Small().Write(faulty, path).has_value());
  EXPECT_EQ(env.Map(path).value()->text(), "old");
  ASSERT_TRUE(Small().Write(env, path).has_value());
  EXPECT_TRUE(SafetensorsFile::Open(env, path).has_value());
  std::remove(path.c_str());
}

}  // namespace
}  // namespace kvasir::formats
