// The sequence manager under hostile strings of operations, beside its oracle. The first byte
// chooses block size and budget; then three bytes an operation: kind and sequence, a count, a
// token.
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "base/check.h"
#include "kvcache/manager_test_oracle.h"

namespace kvasir::kvcache {
namespace {

constexpr std::size_t kSequences = 3;
constexpr std::size_t kMaxOperations = 64;

void Operate(ManagerOracle& world, std::uint8_t operation, std::uint8_t argument,
             std::uint8_t letter) {
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

}  // namespace
}  // namespace kvasir::kvcache

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using kvasir::kvcache::CacheGeometry;
  using kvasir::kvcache::ManagerOracle;
  if (size == 0) return 0;
  const std::uint64_t block_tokens = 16 * (1 + data[0] % 3);
  ManagerOracle world(
      CacheGeometry::Make({.layers = 1, .kv_heads = 1, .head_dim = 1, .block_tokens = block_tokens})
          .value(),
      {.capacity_blocks = 1u + data[0] / 4 % 8,
       .sequences = kvasir::kvcache::kSequences,
       .placement_seed = data[0]});
  std::size_t operations = 0;
  for (std::size_t at = 1; at + 3 <= size; at += 3) {
    if (++operations > kvasir::kvcache::kMaxOperations) break;
    kvasir::kvcache::Operate(world, data[at], data[at + 1], data[at + 2]);
    world.Check();
    if (!world.problem().empty()) {
      std::fprintf(stderr, "operation %zu: %s\n", operations, world.problem().c_str());
    }
    KV_CHECK(world.problem().empty());
  }
  return 0;
}
