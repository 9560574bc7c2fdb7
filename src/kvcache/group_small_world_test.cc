// The sequence manager of a cache with a window beside a full layer, against its oracle under every
// short string of operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kvcache/group_test_oracle.h"

namespace kvasir::kvcache {
namespace {

// Two sequences, two layers of one number, the first with a window of 5; blocks of 16 positions.
class GroupSmallWorldTest : public testing::Test {
 protected:
  enum class Kind {
    kAppend1,
    kAppend16,
    kAppendOther16,
    kDropTwo,
    kHalve,
    kFinish,
    kPreempt,
    kResume,
    kFork
  };
  struct Operation {
    Kind kind;
    std::size_t index;
  };
  static constexpr std::size_t kSequences = 2;

  static std::vector<Operation> Alphabet() {
    std::vector<Operation> alphabet;
    for (std::size_t i = 0; i < kSequences; ++i) {
      for (int kind = 0; kind <= static_cast<int>(Kind::kFork); ++kind) {
        alphabet.push_back({static_cast<Kind>(kind), i});
      }
    }
    return alphabet;
  }

  static void Apply(GroupOracle& world, const Operation& operation) {
    const std::size_t i = operation.index;
    const std::size_t length = world.length(i);
    switch (operation.kind) {
      case Kind::kAppend1:
        world.Append(i, GroupOracle::Tokens(1, 1));
        break;
      case Kind::kAppend16:
        world.Append(i, GroupOracle::Tokens(16, 1));
        break;
      case Kind::kAppendOther16: {
        GroupOracle::Tokens tokens(16, 1);
        tokens[9] = 2;
        world.Append(i, tokens);
        break;
      }
      case Kind::kDropTwo:
        world.Truncate(i, length - std::min<std::size_t>(length, 2));
        break;
      case Kind::kHalve:
        world.Truncate(i, length / 2);
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
        world.Fork(i, 1 - i);
        break;
    }
  }

  static std::unique_ptr<GroupOracle> World(const std::vector<Operation>& operations) {
    const PolicyShape shape = {.layers = 2, .kv_heads = 1, .head_dim = 1};
    const CacheGeometry geometry =
        CacheGeometry::Make({.layers = 2,
                             .kv_heads = 1,
                             .head_dim = 1,
                             .policy = CachePolicy::Parse("0:window=5", shape).value()})
            .value();
    auto world = std::make_unique<GroupOracle>(
        geometry,
        GroupOracleOptions{.budget_bytes = 4 * geometry.block_bytes(), .sequences = kSequences});
    for (const Operation& operation : operations) Apply(*world, operation);
    return world;
  }

  static std::string Describe(const std::vector<Operation>& operations) {
    std::string text;
    for (const Operation& operation : operations) {
      text += " " + std::to_string(static_cast<int>(operation.kind)) + ":" +
              std::to_string(operation.index);
    }
    return text;
  }

  // By length. A string whose end is in a state seen already goes on as the other one does, so each
  // state on the way is left by every operation once.
  static void TryAll(std::size_t max_operations) {
    const std::vector<Operation> alphabet = Alphabet();
    std::unordered_set<std::string> seen = {World({})->State()};
    std::vector<std::vector<Operation>> frontier = {{}};
    std::uint64_t strings = 0;
    std::uint64_t shortened = 0;
    for (std::size_t length = 1; length <= max_operations; ++length) {
      std::vector<std::vector<Operation>> next;
      for (const std::vector<Operation>& prefix : frontier) {
        for (const Operation& operation : alphabet) {
          std::vector<Operation> operations = prefix;
          operations.push_back(operation);
          const auto world = World(operations);
          ++strings;
          world->Check();
          ASSERT_EQ(world->problem(), "") << Describe(operations);
          shortened += world->shortened();
          if (length < max_operations && seen.insert(world->State()).second) {
            next.push_back(std::move(operations));
          }
        }
      }
      frontier = std::move(next);
    }
    RecordProperty("strings", static_cast<int>(strings));
    RecordProperty("states", static_cast<int>(seen.size()));
    EXPECT_GT(strings, 20'000u);
    EXPECT_GT(shortened, 100u);
  }
};

TEST_F(GroupSmallWorldTest, EveryStringOfSixOperations) { TryAll(6); }

}  // namespace
}  // namespace kvasir::kvcache
