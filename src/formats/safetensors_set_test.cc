#include "formats/safetensors_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "formats/safetensors_writer.h"
#include "tensor/convert.h"

namespace kvasir::formats {
namespace {

using ::testing::HasSubstr;

class SafetensorsSetTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/safetensors_set_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    Shard("1.safetensors", {"a", "b"});
    Shard("2.safetensors", {"c"});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Shard(const std::string& file, const std::vector<std::string>& names) const {
    SafetensorsWriter writer;
    const std::vector<float> one = {1};
    for (const std::string& name : names) {
      writer.Add(name, {1}, tensor::DType::kF32, tensor::ConvertFromF32(tensor::DType::kF32, one));
    }
    ASSERT_TRUE(writer.Write(env_, folder_ + "/" + file).has_value());
  }
  auto OpenIndex(const std::string& weight_map) const {
    const std::string text = R"({"metadata":{"total_size":12},"weight_map":)" + weight_map + "}";
    EXPECT_TRUE(base::WriteFileAtomic(env_, folder_ + "/model.safetensors.index.json",
                                      std::string_view(text))
                    .has_value());
    return SafetensorsSet::Open(env_, folder_);
  }
  void Refused(const std::string& weight_map, const std::string& why) const {
    const auto opened = OpenIndex(weight_map);
    ASSERT_FALSE(opened.has_value()) << weight_map;
    EXPECT_THAT(opened.error().message, HasSubstr(why));
  }

  base::Env& env_ = base::Env::Default();
  std::string folder_;
};

constexpr const char* kWhole = R"({"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"})";

TEST_F(SafetensorsSetTest, FindsTensorsInEveryShard) {
  const auto set = OpenIndex(kWhole).value();
  EXPECT_EQ(set.files().size(), 2u);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(set.Find(name)->name, name);
  EXPECT_EQ(set.Find("d"), nullptr);
}

TEST_F(SafetensorsSetTest, OneFileGoesBeforeAnIndex) {
  ASSERT_TRUE(OpenIndex(kWhole).has_value());
  Shard("model.safetensors", {"only"});
  EXPECT_NE(SafetensorsSet::Open(env_, folder_).value().Find("only"), nullptr);
  EXPECT_NE(SafetensorsSet::Open(env_, folder_ + "/2.safetensors").value().Find("c"), nullptr);
}

TEST_F(SafetensorsSetTest, RefusesAnIndexThatDoesNotFit) {
  Refused(R"({"a":"1.safetensors","b":"1.safetensors","c":"1.safetensors"})", "'c' is not in");
  Refused(R"({"a":"1.safetensors","c":"2.safetensors"})", "holds tensor 'b'");
  Refused(R"({"a":"1.safetensors","b":"3.safetensors"})", "3.safetensors");
  Refused(R"({"a":"../1.safetensors"})", "names no safetensors file");
  Refused(R"({"a":".safetensors"})", "names no safetensors file");
  Refused(R"({"a":"1.bin"})", "names no safetensors file");
  Refused(R"({"a":1})", "names no safetensors file");
  Refused("{}", "names no file");
  Refused("[]", "weight_map");
  Shard("2.safetensors", {"a", "c"});  // One tensor in two files.
  Refused(kWhole, "holds tensor 'a'");
}

}  // namespace
}  // namespace kvasir::formats
