// The sequence manager against its oracle under every short string of operations.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kvcache/manager_test_oracle.h"

namespace kvasir::kvcache {
namespace {

// Three sequences, four blocks of 16 positions, one layer of one number.
class ManagerSmallWorldTest : public testing::Test {
 protected:
  enum class Kind {
    kAppend1,
    kAppend16,
    kAppendOther16,
    kHalve,
    kFinish,
    kPreempt,
    kResume,
    kFork
  };
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
      for (const Kind kind : {Kind::kAppend1, Kind::kAppend16, Kind::kAppendOther16, Kind::kHalve,
                              Kind::kFinish, Kind::kPreempt, Kind::kResume}) {
        alphabet.push_back({kind, i, i});
      }
      for (std::size_t j = 0; j < kSequences; ++j) {
        if (j != i) alphabet.push_back({Kind::kFork, i, j});
      }
    }
    return alphabet;
  }

  static void Apply(ManagerOracle& world, const Operation& operation) {
    const std::size_t i = operation.index;
    switch (operation.kind) {
      case Kind::kAppend1:
        world.Append(i, ManagerOracle::Tokens(1, 1));
        break;
      case Kind::kAppend16:
        world.Append(i, ManagerOracle::Tokens(16, 1));
        break;
      case Kind::kAppendOther16: {
        ManagerOracle::Tokens tokens(16, 1);
        tokens[9] = 2;
        world.Append(i, tokens);
        break;
      }
      case Kind::kHalve:
        world.Truncate(i, world.length(i) / 2);
        break;
      case Kind::kFinish:
        world.Finish(i);
        break;
      case Kind::kPreempt:
        world.Preempt(i, Preemption::kDrop);
        break;
      case Kind::kResume:
        world.Resume(i);
        break;
      case Kind::kFork:
        world.Fork(i, operation.target);
        break;
    }
  }

  static std::unique_ptr<ManagerOracle> World(const std::vector<Operation>& operations) {
    const CacheGeometry shape =
        CacheGeometry::Make({.layers = 1, .kv_heads = 1, .head_dim = 1}).value();
    auto world = std::make_unique<ManagerOracle>(
        shape, ManagerOracleOptions{.capacity_blocks = 4, .sequences = kSequences});
    for (const Operation& operation : operations) Apply(*world, operation);
    return world;
  }

  static std::string Describe(const std::vector<Operation>& operations) {
    std::string text;
    for (const Operation& operation : operations) {
      text += " " + std::to_string(static_cast<int>(operation.kind)) + ":" +
              std::to_string(operation.index) + ">" + std::to_string(operation.target);
    }
    return text;
  }
};

// By length. A string whose end is in a state seen already, at the end of a string no longer, goes
// on as that one does: what the oracle predicts, block by block, is a function of the state, and
// each string of up to six operations is tried from one string of every state on its way.
TEST_F(ManagerSmallWorldTest, EveryStringOfSixOperations) {
  const std::vector<Operation> alphabet = Alphabet();
  std::unordered_set<std::string> seen = {World({})->State()};
  std::vector<std::vector<Operation>> frontier = {{}};
  std::uint64_t strings = 0;
  for (std::size_t length = 1; length <= kMaxOperations; ++length) {
    std::vector<std::vector<Operation>> next;
    for (const std::vector<Operation>& prefix : frontier) {
      for (const Operation& operation : alphabet) {
        std::vector<Operation> operations = prefix;
        operations.push_back(operation);
        const auto world = World(operations);
        ++strings;
        world->Check();
        ASSERT_EQ(world->problem(), "") << Describe(operations);
        if (length < kMaxOperations && seen.insert(world->State()).second) {
          next.push_back(std::move(operations));
        }
      }
    }
    frontier = std::move(next);
  }
  RecordProperty("strings", static_cast<int>(strings));
  RecordProperty("states", static_cast<int>(seen.size()));
  EXPECT_GT(strings, 50'000u);
}

}  // namespace
}  // namespace kvasir::kvcache
