#include "store/block_value.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace kvasir::store {
namespace {

using kvcache::BlockIdentity;

std::vector<std::byte> RandomBytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// As keys and values are: floats of similar size, whose upper bytes repeat.
std::vector<std::byte> FloatBytes(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(1.0f, 2.0f);
  std::vector<std::byte> bytes(4 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const float number = numbers(random);
    std::memcpy(bytes.data() + 4 * i, &number, 4);
  }
  return bytes;
}

BlockIdentity Identity(std::size_t bytes) {
  return {.fingerprint = {1, 2},
          .layout = {3, 4},
          .name = {5, 6},
          .witness = {7, 8},
          .group = 1,
          .bytes = bytes,
          .tokens = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25}};
}

std::vector<std::byte> ValueOf(const BlockIdentity& identity, std::span<const std::byte> block,
                               Compression compression) {
  std::vector<std::byte> value = BeginBlockValue(identity, block);
  FinishBlockValue(compression, value);
  return value;
}

bool IsBlock(const BlockIdentity& identity, std::span<const std::byte> value,
             std::span<const std::byte> block) {
  const auto read = ReadBlockValue(identity, value);
  return read && std::ranges::equal(read->span(), block);
}

TEST(BlockValueTest, GivesBackWhatItWasGiven) {
  for (const std::size_t size : {64u, 192u, 4096u, 10048u}) {
    for (const Compression compression : {Compression::kOff, Compression::kOn}) {
      for (const auto& block :
           {RandomBytes(size, 1), FloatBytes(size / 4, 2), std::vector<std::byte>(size)}) {
        const BlockIdentity identity = Identity(size);
        EXPECT_TRUE(IsBlock(identity, ValueOf(identity, block, compression), block)) << size;
      }
    }
  }
}

TEST(BlockValueTest, IsCompressedOnlyWhereThatSavesAnEighth) {
  const BlockIdentity identity = Identity(65536);
  const std::size_t raw = ValueOf(identity, RandomBytes(65536, 1), Compression::kOff).size();
  EXPECT_EQ(ValueOf(identity, RandomBytes(65536, 1), Compression::kOn).size(), raw);
  EXPECT_EQ(ValueOf(identity, FloatBytes(16384, 1), Compression::kOff).size(), raw);
  EXPECT_LT(ValueOf(identity, FloatBytes(16384, 1), Compression::kOn).size(), raw * 7 / 8);
  EXPECT_LT(ValueOf(identity, std::vector<std::byte>(65536), Compression::kOn).size(), raw / 100);
}

class DamagedValueTest : public testing::TestWithParam<Compression> {};

TEST_P(DamagedValueTest, EveryFlippedBitIsSeen) {
  const std::vector<std::byte> block = FloatBytes(256, 3);
  const BlockIdentity identity = Identity(block.size());
  std::vector<std::byte> value = ValueOf(identity, block, GetParam());
  std::size_t tried = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      value[i] ^= static_cast<std::byte>(1 << bit);
      EXPECT_FALSE(ReadBlockValue(identity, value)) << "byte " << i << ", bit " << bit;
      value[i] ^= static_cast<std::byte>(1 << bit);
      ++tried;
    }
  }
  EXPECT_EQ(tried, 8 * value.size());
  EXPECT_TRUE(IsBlock(identity, value, block));
}

TEST_P(DamagedValueTest, EveryOtherLengthIsSeen) {
  const std::vector<std::byte> block = FloatBytes(256, 3);
  const BlockIdentity identity = Identity(block.size());
  const std::vector<std::byte> value = ValueOf(identity, block, GetParam());
  for (std::size_t size = 0; size < value.size(); ++size) {
    EXPECT_FALSE(ReadBlockValue(identity, std::span(value).first(size))) << size;
  }
  std::vector<std::byte> longer = value;
  longer.push_back({});
  EXPECT_FALSE(ReadBlockValue(identity, longer));
}

TEST_P(DamagedValueTest, IsOfOneIdentityOnly) {
  const std::vector<std::byte> block = FloatBytes(256, 3);
  const BlockIdentity identity = Identity(block.size());
  const std::vector<std::byte> value = ValueOf(identity, block, GetParam());
  const auto refuses = [&](const auto& change) {
    BlockIdentity other = identity;
    change(other);
    return !ReadBlockValue(other, value).has_value();
  };
  EXPECT_TRUE(refuses([](auto& other) { other.fingerprint.low ^= 1; }));
  EXPECT_TRUE(refuses([](auto& other) { other.fingerprint.high ^= 1; }));
  EXPECT_TRUE(refuses([](auto& other) { other.layout.low ^= 1; }));
  EXPECT_TRUE(refuses([](auto& other) { other.name.low ^= 1; }));
  EXPECT_TRUE(refuses([](auto& other) { other.witness.high ^= 1; }));
  EXPECT_TRUE(refuses([](auto& other) { other.group = 0; }));
  EXPECT_TRUE(refuses([](auto& other) { other.bytes += 64; }));
  EXPECT_TRUE(refuses([](auto& other) { other.tokens.back() = 9; }));
  EXPECT_TRUE(refuses([](auto& other) { other.tokens.pop_back(); }));
  EXPECT_TRUE(refuses([](auto& other) { other.tokens.push_back(26); }));
}

INSTANTIATE_TEST_SUITE_P(All, DamagedValueTest,
                         testing::Values(Compression::kOff, Compression::kOn));

}  // namespace
}  // namespace kvasir::store
