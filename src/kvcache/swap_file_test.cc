#include "kvcache/swap_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/faulty_env.h"
#include "base/test_directory.h"

namespace kvasir::kvcache {
namespace {

using base::Env;
using base::TokenId;

CacheGeometry Shape() {
  return CacheGeometry::Make({.layers = 2, .kv_heads = 1, .head_dim = 3}).value();
}

class SwapFileTest : public testing::Test {
 protected:
  SwapFileTest() {
    EXPECT_TRUE(sequence_.Reserve(40));
    sequence_.Advance(40);
    for (std::size_t i = 0; i < 3; ++i) {
      std::memset(pool_->data(sequence_.blocks()[i]), static_cast<int>(i + 1),
                  Shape().block_bytes());
    }
    for (TokenId i = 0; i < 40; ++i) tokens_.push_back(i * 3);
  }
  ~SwapFileTest() override { (void)Env::Default().Remove(path_); }

  SwapKey Key() const { return {{7, 8}, tokens_}; }
  base::Result<std::uint64_t> Write(Env& env = Env::Default()) {
    return WriteSwapFile(env, path_, Key(), sequence_);
  }
  // Reads all blocks, and compares them if all can be read.
  base::Result<void> Read(const SwapKey& key, Env& env = Env::Default()) {
    KV_TRY(auto reader, SwapReader::Open(env, path_, key, Shape()));
    std::vector<std::vector<std::byte>> blocks(3, std::vector<std::byte>(Shape().block_bytes()));
    for (auto& block : blocks) {
      KV_TRY(reader.ReadBlock(block.size(), block.data()));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(
          std::memcmp(blocks[i].data(), pool_->data(sequence_.blocks()[i]), Shape().block_bytes()),
          0);
    }
    EXPECT_EQ(blocks[2].front(), std::byte{3});
    EXPECT_EQ(blocks[2].back(), std::byte{0});  // An empty slot.
    return base::Success();
  }
  std::vector<std::byte> Contents() const {
    const auto file = Env::Default().Map(path_).value();
    return {file->bytes().begin(), file->bytes().end()};
  }
  void Put(std::span<const std::byte> bytes) const {
    const auto file = Env::Default().Create(path_).value();
    EXPECT_TRUE(file->Append(bytes));
    EXPECT_TRUE(file->Close());
  }

  const base::TestDirectory directory_;
  const std::string path_ = directory_.path() + "/one.kvswap";
  const std::unique_ptr<BlockPool> pool_ =
      BlockPool::Make(Shape(), {.budget_bytes = 8 * Shape().block_bytes()}).value();
  CachedSequence sequence_{*pool_};
  std::vector<TokenId> tokens_;
};

TEST_F(SwapFileTest, ReadsWhatWasWritten) {
  const auto bytes = Write();
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes.value(), Contents().size());
  EXPECT_TRUE(Read(Key()));
}

TEST_F(SwapFileTest, BlocksCanBePassedOver) {
  ASSERT_TRUE(Write());
  auto reader = SwapReader::Open(Env::Default(), path_, Key(), Shape());
  ASSERT_TRUE(reader);
  std::vector<std::byte> block(Shape().block_bytes());
  ASSERT_TRUE(reader.value().ReadBlock(block.size(), nullptr));
  ASSERT_TRUE(reader.value().ReadBlock(block.size(), block.data()));
  EXPECT_EQ(block[0], std::byte{2});
}

TEST_F(SwapFileTest, AnotherSequencesFileIsRefused) {
  ASSERT_TRUE(Write());
  const auto refused = [&](const SwapKey& key) {
    const auto read = Read(key);
    return !read && read.error().code == base::ErrorCode::kBadData;
  };
  EXPECT_TRUE(refused({{7, 9}, tokens_}));
  std::vector<TokenId> other = tokens_;
  other[39] = 1;
  EXPECT_TRUE(refused({{7, 8}, other}));
  EXPECT_TRUE(refused({{7, 8}, std::span(tokens_).first(39)}));
  const auto wider = CacheGeometry::Make({.layers = 2, .kv_heads = 1, .head_dim = 4}).value();
  EXPECT_FALSE(SwapReader::Open(Env::Default(), path_, Key(), wider));
}

TEST_F(SwapFileTest, EveryFlippedByteIsSeen) {
  ASSERT_TRUE(Write());
  const std::vector<std::byte> whole = Contents();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::vector<std::byte> flipped = whole;
    flipped[i] ^= std::byte{static_cast<unsigned char>(1u << i % 8)};
    Put(flipped);
    ASSERT_FALSE(Read(Key())) << "byte " << i;
  }
}

TEST_F(SwapFileTest, ATornOrGrownFileIsSeen) {
  ASSERT_TRUE(Write());
  std::vector<std::byte> bytes = Contents();
  for (std::size_t size = 0; size < bytes.size(); size += 97) {
    Put(std::span(bytes).first(size));
    ASSERT_FALSE(Read(Key())) << size;
  }
  bytes.push_back(std::byte{0});
  Put(bytes);
  EXPECT_FALSE(Read(Key()));
}

TEST_F(SwapFileTest, SwappedBlocksAreSeen) {
  ASSERT_TRUE(Write());
  std::vector<std::byte> bytes = Contents();
  const std::size_t block = Shape().block_bytes() + 16;
  const std::size_t first = bytes.size() - 3 * block;
  std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(first),
                   bytes.begin() + static_cast<std::ptrdiff_t>(first + block),
                   bytes.begin() + static_cast<std::ptrdiff_t>(first + block));
  Put(bytes);
  EXPECT_FALSE(Read(Key()));
}

TEST_F(SwapFileTest, EveryFaultOfWritingIsReported) {
  base::FaultyEnv counting(Env::Default());
  ASSERT_TRUE(Write(counting));
  EXPECT_GT(counting.operations(), 8u);
  for (std::uint64_t n = 0; n < counting.operations(); ++n) {
    base::FaultyEnv env(Env::Default());
    env.FailOperation(n);
    EXPECT_FALSE(Write(env)) << n;
  }
  const std::size_t size = Contents().size();
  for (std::uint64_t bytes = 0; bytes < size; bytes += 111) {
    base::FaultyEnv env(Env::Default());
    env.LimitBytes(bytes);
    EXPECT_FALSE(Write(env)) << bytes;
    EXPECT_FALSE(Read(Key())) << bytes;
  }
  base::FaultyEnv env(Env::Default());
  ASSERT_TRUE(Write());
  env.TruncateReads(size - 1);
  EXPECT_FALSE(Read(Key(), env));
}

TEST_F(SwapFileTest, KeyAndSequenceMustAgree) {
  tokens_.pop_back();
  EXPECT_DEATH((void)Write(), "tokens.size");
}

}  // namespace
}  // namespace kvasir::kvcache
