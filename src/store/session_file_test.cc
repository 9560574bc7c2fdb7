#include "store/session_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/faulty_env.h"
#include "base/test_directory.h"

namespace kvasir::store {
namespace {

using base::Env;
using kvcache::BlockIdentity;

const SessionModel kModel = {
    .weights = {1, 2}, .contract = 1, .block_tokens = 16, .policy = "full,dtype=f32"};

BlockIdentity Identity(std::uint64_t number, std::uint32_t group) {
  return {.fingerprint = {3, 4},
          .layout = {5, 6},
          .name = {number, number},
          .witness = {7, number},
          .group = group,
          .bytes = 64,
          .tokens = {1, 2, 3}};
}

std::vector<std::byte> Block(std::uint64_t number) {
  return std::vector<std::byte>(64, static_cast<std::byte>(number));
}

Session MakeSession() {
  Session session = {.tokens = {5, 6, 7, 8}, .prompt_tokens = 3, .settings = "{\"seed\":1}"};
  for (std::uint64_t i = 0; i < 3; ++i) {
    session.blocks.Put(Identity(i, 0), Block(i));
    session.blocks.Put(Identity(i, 2), Block(10 + i));
  }
  return session;
}

class SessionFileTest : public testing::Test {
 protected:
  const base::TestDirectory directory_;
  const std::string path_ = directory_.path() + "/s.kvsession";

  std::vector<std::byte> Written() {
    EXPECT_TRUE(WriteSession(Env::Default(), path_, kModel, MakeSession()));
    const auto file = Env::Default().Map(path_).value();
    return {file->bytes().begin(), file->bytes().end()};
  }
  void Overwrite(std::span<const std::byte> bytes) {
    ASSERT_TRUE(base::WriteFileAtomic(Env::Default(), path_, bytes));
  }
  std::string Refusal(const SessionModel& model = kModel) {
    const auto read = ReadSession(Env::Default(), path_, model);
    if (read) return "";
    EXPECT_EQ(read.error().code, base::ErrorCode::kBadData);
    EXPECT_THAT(read.error().message, testing::HasSubstr(path_));
    return read.error().message;
  }
};

TEST_F(SessionFileTest, ReadsWhatWasWritten) {
  Written();
  Session session = ReadSession(Env::Default(), path_, kModel).value();
  EXPECT_EQ(session.tokens, MakeSession().tokens);
  EXPECT_EQ(session.prompt_tokens, 3u);
  EXPECT_EQ(session.settings, "{\"seed\":1}");
  const auto read = session.blocks.Read({Identity(1, 2), Identity(1, 1), Identity(2, 0)}, false);
  ASSERT_TRUE(read->Wait({}));
  const auto blocks = read->Take();
  EXPECT_TRUE(blocks[0].found && !blocks[1].found && blocks[2].found);
  EXPECT_TRUE(std::ranges::equal(blocks[0].bytes.span(), Block(11)));
  EXPECT_TRUE(std::ranges::equal(blocks[2].bytes.span(), Block(2)));
}

TEST_F(SessionFileTest, EveryAlteredByteIsSeen) {
  std::vector<std::byte> bytes = Written();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x41};
    Overwrite(bytes);
    EXPECT_NE(Refusal(), "") << i;
    bytes[i] ^= std::byte{0x41};
  }
  Overwrite(bytes);
  EXPECT_EQ(Refusal(), "");
}

TEST_F(SessionFileTest, EveryOtherLengthIsSeen) {
  std::vector<std::byte> bytes = Written();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Overwrite(std::span(bytes).first(size));
    EXPECT_NE(Refusal(), "") << size;
  }
  bytes.push_back({});
  Overwrite(bytes);
  EXPECT_NE(Refusal(), "");
}

// Counts that lie, under a checksum that fits.
TEST_F(SessionFileTest, AHeaderThatLiesIsRefused) {
  const std::vector<std::byte> bytes = Written();
  for (const std::size_t offset : {20u, 40u, 48u, 56u, 64u}) {
    for (const std::uint64_t lie :
         {~std::uint64_t{0}, std::uint64_t{1} << 62, std::uint64_t{0xffffffff}, std::uint64_t{0}}) {
      std::vector<std::byte> lying = bytes;
      std::memcpy(lying.data() + offset, &lie, offset == 20 ? 4 : 8);
      const auto sum = base::HashBytes128(
          std::span(lying).first(lying.size() - sizeof(base::Hash128)), 0x73657373);
      std::memcpy(lying.data() + lying.size() - sizeof(sum), &sum, sizeof(sum));
      Overwrite(lying);
      EXPECT_THAT(Refusal(), testing::HasSubstr("header says")) << offset << " " << lie;
    }
  }
}

TEST_F(SessionFileTest, OfAnotherModelOrSettingItIsRefusedWithTheReason) {
  Written();
  const auto refusal = [&](const std::function<void(SessionModel&)>& change) {
    SessionModel other = kModel;
    change(other);
    return Refusal(other);
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal([](auto& m) { m.weights.high = 9; }), HasSubstr("another model"));
  EXPECT_THAT(refusal([](auto& m) { m.contract = 2; }), HasSubstr("contract 1"));
  EXPECT_THAT(refusal([](auto& m) { m.policy = "dtype=f16"; }), HasSubstr("\"dtype=f16\""));
  EXPECT_THAT(refusal([](auto& m) { m.block_tokens = 32; }), HasSubstr("--block-tokens 16"));
  Overwrite(std::as_bytes(std::span("GGUF and more")));
  EXPECT_THAT(Refusal(), HasSubstr("not a session"));
}

TEST_F(SessionFileTest, AFullDiskLeavesTheOldFile) {
  const std::vector<std::byte> before = Written();
  Session other = MakeSession();
  other.tokens.push_back(9);
  for (std::uint64_t n = 0; n < 5; ++n) {
    base::FaultyEnv env(Env::Default());
    env.FailOperation(n);
    if (WriteSession(env, path_, kModel, other)) break;
    const auto file = Env::Default().Map(path_).value();
    EXPECT_TRUE(std::ranges::equal(file->bytes(), before)) << n;
  }
}

}  // namespace
}  // namespace kvasir::store
