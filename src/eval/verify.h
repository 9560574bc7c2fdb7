// Verify: shows the numerics contract on a model and machine, by raw bits of logits.
//
// Every trial draws random sequences, computes each plainly (token by token, one thread, the best
// instruction set, blocks of 16, alone in its cache), and again in other arrangements of the same
// work. Each row of logits must have the bits of the plain run's.
#ifndef KVASIR_EVAL_VERIFY_H_
#define KVASIR_EVAL_VERIFY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/token_id.h"
#include "kernels/contract.h"
#include "kvcache/cache_policy.h"
#include "model/model.h"

namespace kvasir::eval {

using kernels::kContractVersion;

// One way in which the work can be arranged. All but kMixed change one thing, besides how a
// sequence is cut into steps where that cannot be kept apart.
enum class VerifyAxis : std::uint8_t {
  kKvCache,       // Off: all recomputed for each row. Partly: truncated, overwritten, regrown.
  kPrefillChunk,  // 1 … whole sequence a step.
  kBatch,         // 2 … 64 sequences, mixed prefill and decode, random order and membership.
  kThreads,       // 2 … 8.
  kBlock,         // 32 … 256 positions a block.
  kPlacement,     // Blocks in random order, over stale bytes, sequences interleaved.
  kFork,          // Shared prefixes, copy-on-write, parents dropped.
  kPrefix,        // Prefixes found in the cache, partly evicted, hits inside a block.
  kRestore,       // Preempted and resumed: from a file, from the index, computed again.
  kSimd,          // Every instruction set of this machine.
  kMixed,         // All of the above at once.
  kPolicy,        // Another cache policy each time, itself under the axes above.
  kTrainer,       // The trainer's evaluation pass.
};
inline constexpr std::size_t kVerifyAxes = 13;
std::string_view VerifyAxisName(VerifyAxis axis);  // "kv_cache"

// A whole sequence's logits [tokens][vocab] by another path than Model::Forward.
using SequenceForward = std::function<base::Result<void>(std::span<const base::TokenId> tokens,
                                                         std::span<float> logits)>;

struct VerifyOptions {
  std::uint64_t trials = 40;  // >= 1
  std::uint64_t seed = 0;
  SequenceForward trainer = nullptr;  // Null: the trainer axis is left out.
  // Of all axes but kPolicy: what is compared is this policy's function. Null: the full cache.
  std::optional<kvcache::CachePolicy> policy = std::nullopt;
  std::function<void(std::uint64_t)> after_trial =
      nullptr;  // May be null; gets the number of trials done.
};

struct AxisCount {
  std::uint64_t comparisons = 0;  // Rows of logits.
  std::uint64_t mismatches = 0;   // Rows with any other bit.
};

struct VerifyReport {
  std::uint64_t trials = 0;
  std::array<AxisCount, kVerifyAxes> axes = {};  // By VerifyAxis.
  bool trainer_checked = false;
  std::string first_mismatch;  // Empty, or where the first was and what it was.

  const AxisCount& of(VerifyAxis axis) const { return axes[static_cast<std::size_t>(axis)]; }
  std::uint64_t comparisons() const;
  std::uint64_t mismatches() const;
};

// Errors: kUsage for 0 trials; kNumeric if a plain row is not finite (naming the position: outside
// the contract); whatever the model refuses. A mismatch is no Error. Forces instruction sets for
// the whole process while it runs, and leaves the best one: call it while no other kernel runs.
base::Result<VerifyReport> Verify(const model::Model& model, const VerifyOptions& options);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_VERIFY_H_
