// The sequence manager under hostile strings of operations, beside its oracles. The first byte
// chooses block size, budget and cache policy; then three bytes an operation: kind and sequence, a
// count, a token.
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "base/check.h"
#include "kvcache/group_test_oracle.h"
#include "kvcache/manager_test_oracle.h"

namespace kvasir::kvcache {
namespace {

constexpr std::size_t kSequences = 3;
constexpr std::size_t kMaxOperations = 64;

// By the highest bits of the first byte; the first stands for the full cache.
constexpr const char* kPolicies[] = {
    "full",
    "window=5",
    "0:window=20,sinks=3",
    "k=int4,group=16,v=int8",
    "0:k=int4,group=16,window=33;1:window=1",
    "0:store=hidden,window=9;1:dtype=f16",
    "1:window=17,sinks=17",
    "0:store=none",
};

template <typename World>
void Operate(World& world, std::uint8_t operation, std::uint8_t argument, std::uint8_t letter) {
  const std::size_t i = operation / 16 % kSequences;
  ManagerOracle::Tokens tokens(1 + argument % 40, 1);
  tokens[letter / 4 % tokens.size()] = 1 + letter % 4;
  switch (operation % 8) {
    case 0:
      world.Fork(i, (i + 1 + argument % (kSequences - 1)) % kSequences);
      break;
    case 1:
      world.Truncate(i, argument % (world.length(i) + 1));
      break;
    case 2:
      world.Finish(i);
      break;
    case 3:
      world.Preempt(i, Preemption::kDrop);
      break;
    case 4:
      world.Resume(i);
      break;
    case 5:
      world.FailedStep(i, argument % 70);
      break;
    default:
      world.Append(i, tokens);
      break;
  }
}

template <typename World>
void Run(World& world, const std::uint8_t* data, std::size_t size) {
  std::size_t operations = 0;
  for (std::size_t at = 1; at + 3 <= size; at += 3) {
    if (++operations > kMaxOperations) break;
    Operate(world, data[at], data[at + 1], data[at + 2]);
    world.Check();
    if (!world.problem().empty()) {
      std::fprintf(stderr, "operation %zu: %s\n", operations, world.problem().c_str());
    }
    KV_CHECK(world.problem().empty());
  }
}

void RunPolicy(const char* spec, const std::uint8_t* data, std::size_t size) {
  const PolicyShape shape = {.layers = 2, .kv_heads = 1, .head_dim = 1};
  const CacheGeometry geometry =
      CacheGeometry::Make({.layers = 2,
                           .kv_heads = 1,
                           .head_dim = 1,
                           .block_tokens = std::uint64_t{16} * (1 + data[0] % 3),
                           .hidden_dim = 1,
                           .policy = CachePolicy::Parse(spec, shape).value()})
          .value();
  GroupOracle world(geometry, {.budget_bytes = (1u + data[0] / 4 % 8) * geometry.block_bytes(),
                               .sequences = kSequences,
                               .placement_seed = data[0]});
  Run(world, data, size);
}

}  // namespace
}  // namespace kvasir::kvcache

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using kvasir::kvcache::CacheGeometry;
  using kvasir::kvcache::ManagerOracle;
  if (size == 0) return 0;
  const std::size_t policy = data[0] / 32;
  if (policy != 0) {
    kvasir::kvcache::RunPolicy(kvasir::kvcache::kPolicies[policy], data, size);
    return 0;
  }
  const std::uint64_t block_tokens = 16 * (1 + data[0] % 3);
  ManagerOracle world(
      CacheGeometry::Make({.layers = 1, .kv_heads = 1, .head_dim = 1, .block_tokens = block_tokens})
          .value(),
      {.capacity_blocks = 1u + data[0] / 4 % 8,
       .sequences = kvasir::kvcache::kSequences,
       .placement_seed = data[0]});
  kvasir::kvcache::Run(world, data, size);
  return 0;
}
