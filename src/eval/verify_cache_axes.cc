// The axes of Verify in which a manager holds the sequences: found prefixes, preempted and resumed.
#include <algorithm>
#include <vector>

#include "eval/memory_env.h"
#include "eval/sequence_logits.h"
#include "eval/verify_axes.h"
#include "kvcache/sequence_manager.h"

namespace kvasir::eval {
namespace {

using kvcache::Preemption;
using kvcache::SequenceId;
using kvcache::SequenceManager;

// Sequences of a trial's world in a manager, one a step on one thread.
class ManagedWorld {
 public:
  // The budget holds so many sequences of a full context.
  static base::Result<ManagedWorld> Make(VerifyAxis axis, const AxisTrial& trial,
                                         std::uint64_t contexts, base::Env& swap_env) {
    const model::ModelShape& shape = trial.model.shape();
    KV_TRY(const auto pool, trial.Cache({}));
    const kvcache::CacheGeometry& geometry = pool->geometry();
    kvcache::SequenceManagerOptions options;
    options.pool.budget_bytes =
        contexts * geometry.BlocksFor(shape.context) * geometry.block_bytes();
    options.swap_env = &swap_env;
    options.swap_directory = "swap";
    KV_TRY(auto manager, SequenceManager::Make(geometry, options));
    return ManagedWorld(axis, trial, std::move(manager));
  }

  SequenceManager& manager() { return *manager_; }

  // Computes the sequence from its length up to `end`, in steps of random sizes, and compares all
  // rows. kExhausted if the budget does not hold it.
  base::Result<void> Advance(SequenceId id, const PlainSequence& plain, std::size_t end) {
    const std::size_t vocab = trial_.model.shape().vocab;
    while (manager_->cache(id).length() < end) {
      const std::size_t begin = manager_->cache(id).length();
      const std::size_t count =
          trial_.random.Between(1, std::min(end - begin, LogitRowsPerStep(trial_.model.shape())));
      const auto tokens = std::span(plain.tokens).subspan(begin, count);
      KV_TRY(manager_->cache(id).Reserve(count));
      logits_.resize(std::max(logits_.size(), count * vocab));
      const model::BatchItem item = {&manager_->cache(id), tokens, count};
      KV_TRY(trial_.model.Forward({&item, 1}, scratch_, trial_.teams.Of(1),
                                  std::span(logits_).first(count * vocab)));
      manager_->Commit(id, tokens);
      for (std::size_t i = 0; i < count; ++i) {
        trial_.comparer.Compare(axis_, plain, begin + i,
                                std::span(logits_).subspan(i * vocab, vocab));
      }
    }
    return base::Success();
  }

 private:
  ManagedWorld(VerifyAxis axis, const AxisTrial& trial, std::unique_ptr<SequenceManager> manager)
      : axis_(axis), trial_(trial), manager_(std::move(manager)) {}

  VerifyAxis axis_;
  const AxisTrial& trial_;
  std::unique_ptr<SequenceManager> manager_;
  model::Scratch scratch_;
  std::vector<float> logits_;  // [rows of a step][vocab]
};

// At most this many of the world's sequences, for time's sake; the first one always among them,
// since others share its prefixes.
constexpr std::size_t kSequences = 6;

std::vector<const PlainSequence*> SomeSequences(const AxisTrial& trial) {
  std::vector<const PlainSequence*> some;
  for (const PlainSequence& plain : trial.world.subspan(1)) some.push_back(&plain);
  trial.random.Shuffle(some);
  some.resize(std::min(some.size(), kSequences - 1));
  some.push_back(&trial.world.front());
  return some;
}

}  // namespace

// Each text twice, in any order, finding what others and its first time have left. The budget holds
// two, so that much of that has been evicted.
base::Result<void> RunPrefixAxis(const AxisTrial& trial) {
  MemoryEnv env;
  KV_TRY(auto world, ManagedWorld::Make(VerifyAxis::kPrefix, trial, 2, env));
  std::vector<const PlainSequence*> order = SomeSequences(trial);
  const std::vector<const PlainSequence*> again = order;
  order.insert(order.end(), again.begin(), again.end());
  trial.random.Shuffle(order);
  for (const PlainSequence* plain : order) {
    const SequenceId id = world.manager().Create();
    // At least the last row is computed.
    world.manager().TakePrefix(id, std::span(plain->tokens).first(plain->tokens.size() - 1));
    KV_TRY(world.Advance(id, *plain, plain->tokens.size()));
    world.manager().Finish(id);
  }
  return base::Success();
}

// Sequences take turns in a budget of one full context and so push each other out, to a file or for
// good; each goes on with what is left of it.
base::Result<void> RunRestoreAxis(const AxisTrial& trial) {
  MemoryEnv env;
  KV_TRY(auto world, ManagedWorld::Make(VerifyAxis::kRestore, trial, 1, env));
  SequenceManager& manager = world.manager();
  std::vector<std::pair<const PlainSequence*, SequenceId>> open;
  for (const PlainSequence* plain : SomeSequences(trial))
    open.emplace_back(plain, manager.Create());
  const auto preempt_others = [&](SequenceId kept) {
    for (const auto& [plain, id] : open) {
      if (id == kept || manager.is_preempted(id)) continue;
      manager.Preempt(id, trial.random.Chance(1, 2) ? Preemption::kSwap : Preemption::kDrop);
    }
  };
  while (!open.empty()) {
    const std::size_t pick = trial.random.Below(open.size());
    const auto [plain, id] = open[pick];
    preempt_others(id);
    if (manager.is_preempted(id)) {
      KV_TRY(manager.Resume(id));
    }
    const std::size_t known = manager.tokens(id).size();
    const std::size_t more = plain->tokens.size() - known;
    const std::size_t end =
        trial.random.Chance(1, 3) ? plain->tokens.size() : known + trial.random.Below(more + 1);
    KV_TRY(world.Advance(id, *plain, end));
    if (manager.cache(id).length() < plain->tokens.size()) continue;
    manager.Finish(id);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  return base::Success();
}

}  // namespace kvasir::eval
