// The cache against the oracle under every short string of operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kvcache/cache_oracle.h"

namespace kvasir::kvcache {
namespace {

// Every string of up to six operations over three sequences and four blocks.
class SmallWorldTest : public testing::Test {
 protected:
  enum class Kind { kAppend1, kAppend16, kHalve, kReset, kFork };
  struct Operation {
    Kind kind;
    std::size_t index;
    std::size_t target;  // Of a fork.
  };
  static constexpr std::size_t kSequences = 3;
  static constexpr std::size_t kMaxOperations = 6;

  static std::vector<Operation> Alphabet() {
    std::vector<Operation> alphabet;
    for (std::size_t i = 0; i < kSequences; ++i) {
      for (const Kind kind : {Kind::kAppend1, Kind::kAppend16, Kind::kHalve, Kind::kReset}) {
        alphabet.push_back({kind, i, i});
      }
      for (std::size_t j = 0; j < kSequences; ++j) {
        if (j != i) alphabet.push_back({Kind::kFork, i, j});
      }
    }
    return alphabet;
  }

  // False if the operation changes nothing.
  bool Apply(const Operation& operation) {
    const std::size_t i = operation.index;
    const bool was_empty = world_.length(i) == 0;
    switch (operation.kind) {
      case Kind::kAppend1:
        return world_.Append(i, 1);
      case Kind::kAppend16:
        return world_.Append(i, 16);
      case Kind::kHalve:
        world_.Truncate(i, world_.length(i) / 2);
        return !was_empty;
      case Kind::kReset:
        world_.Reset(i);
        return !was_empty;
      case Kind::kFork:
        const bool both_empty = was_empty && world_.length(operation.target) == 0;
        world_.Fork(i, operation.target);
        return !both_empty;
    }
    return false;
  }

  // Tries each operation after prefix_. Left out, since another string covers them: strings that go
  // on after an operation that changed nothing, and renamings of the sequences: `used` of them
  // occur in the prefix, and a new one is always the lowest unused.
  void Explore(std::size_t used) {
    for (const Operation& operation : alphabet_) {
      if (operation.index > used || operation.target > std::max(used, operation.index + 1))
        continue;
      const std::size_t now_used = std::max({used, operation.index + 1, operation.target + 1});
      for (std::size_t i = 0; i < kSequences; ++i) world_.Reset(i);
      for (const Operation& earlier : prefix_) Apply(earlier);
      const bool changed = Apply(operation);
      ++strings_;
      world_.Check();
      prefix_.push_back(operation);
      if (HasFailure()) return;
      if (changed && prefix_.size() < kMaxOperations) Explore(now_used);
      if (HasFailure()) return;
      prefix_.pop_back();
    }
  }

  static CacheGeometry Shape() {
    return CacheGeometry::Make({.layers = 1, .kv_heads = 1, .head_dim = 1}).value();
  }
  CacheOracle world_{Shape(), {.budget_bytes = 4 * Shape().block_bytes()}, kSequences};
  const std::vector<Operation> alphabet_ = Alphabet();
  std::vector<Operation> prefix_;
  std::uint64_t strings_ = 0;
};

TEST_F(SmallWorldTest, EveryStringOfSixOperations) {
  Explore(0);
  for (const Operation& operation : prefix_) {  // Empty unless a string failed.
    ADD_FAILURE() << "operation " << static_cast<int>(operation.kind) << " on " << operation.index
                  << " to " << operation.target;
  }
  RecordProperty("strings", static_cast<int>(strings_));
  EXPECT_GT(strings_, 500'000u);
}

}  // namespace
}  // namespace kvasir::kvcache
