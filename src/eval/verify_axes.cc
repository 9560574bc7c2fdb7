#include "eval/verify_axes.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/targets.h"

namespace kvasir::eval {
namespace {

// Leaves the best instruction set, however a function ends.
class ForcedTarget {
 public:
  explicit ForcedTarget(const kernels::Target& target) { kernels::ForceTarget(target); }
  ~ForcedTarget() { kernels::UseBestTarget(); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;
};

const PlainSequence& AnySequence(const AxisTrial& trial) {
  return trial.world[trial.random.Below(trial.world.size())];
}

// 16, 32, … 256 positions a block, at least `low`; fewer where so many sequences of a large model
// would hold hundreds of megabytes in blocks they hardly fill.
std::uint64_t AnyBlockTokens(const AxisTrial& trial, std::size_t sequences, std::uint64_t low) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;
  const auto geometry = kvcache::CacheGeometry::Make(trial.model.shape().Cache(low));
  KV_CHECK(geometry.has_value());  // The plain run has made one already.
  const std::uint64_t token_bytes = geometry.value().bytes_per_token();
  const std::uint64_t step = trial.policy ? kvcache::BlockStep(*trial.policy) : 16;
  low = std::max(low, step);
  const std::uint64_t most = std::clamp<std::uint64_t>(kMaxBytes / (token_bytes * sequences), low,
                                                       kvcache::kMaxBlockTokens);
  return step * trial.random.Between(low / step, most / step);
}

std::vector<Stream> StreamsOf(std::span<const PlainSequence> world, kvcache::BlockPool& pool) {
  std::vector<Stream> streams;
  for (const PlainSequence& plain : world) {
    streams.push_back({&plain, kvcache::CachedSequence(pool)});
  }
  return streams;
}

// Feeds for a random choice of the streams that are not done, in random order; most decode one
// token, some prefill more, and some rows of logits are not asked for.
std::vector<Feed> AnyFeeds(std::vector<Stream>& streams, RandomStream& random) {
  std::vector<Stream*> open;
  for (Stream& stream : streams) {
    if (stream.left() > 0) open.push_back(&stream);
  }
  random.Shuffle(open);
  // All of them half of the time, so that the widest batch is reached.
  if (random.Chance(1, 2)) open.resize(std::min<std::size_t>(open.size(), random.Between(1, 64)));
  std::vector<Feed> feeds;
  for (Stream* stream : open) {
    const std::size_t count = random.Chance(1, 2) ? 1 : random.Between(1, stream->left());
    feeds.push_back({stream, count, random.Chance(3, 4) ? count : random.Below(count + 1)});
  }
  return feeds;
}

bool AnyLeft(std::span<const Stream> streams) {
  return std::any_of(streams.begin(), streams.end(), [](const Stream& s) { return s.left() > 0; });
}

// A sequence alone, in steps of random sizes.
base::Result<void> RunAlone(VerifyAxis axis, const AxisTrial& trial, const PlainSequence& plain,
                            base::ThreadTeam& team, std::uint64_t block_tokens) {
  KV_TRY(const auto pool, trial.Cache({.block_tokens = block_tokens}));
  Stream stream = {&plain, kvcache::CachedSequence(*pool)};
  VerifyRunner runner(axis, trial.model, team, trial.comparer);
  return runner.Advance(stream, plain.tokens.size(), trial.random);
}

std::vector<base::TokenId> AnyTokens(std::size_t count, std::uint64_t vocab, RandomStream& random) {
  std::vector<base::TokenId> tokens(count);
  for (base::TokenId& token : tokens) token = static_cast<base::TokenId>(random.Below(vocab));
  return tokens;
}

// Cuts a stream back, at times after tokens of another text have gone over what follows.
base::Result<void> CutBack(VerifyRunner& runner, Stream& stream, std::uint64_t vocab,
                           RandomStream& random) {
  std::size_t kept = random.Below(stream.done() + 1);
  if (random.Chance(1, 2)) {
    kept = stream.cache.Truncate(kept);  // Less, where a window has passed.
    if (stream.left() > 0) {
      const auto other = AnyTokens(random.Between(1, stream.left()), vocab, random);
      KV_TRY(runner.Pollute(stream, other));
    }
  }
  stream.cache.Truncate(kept);
  return base::Success();
}

// Children of the first stream at the prefixes they share with it, taken while it grows.
base::Result<void> GrowAndFork(VerifyRunner& runner, std::vector<Stream>& streams,
                               RandomStream& random) {
  Stream& parent = streams.front();
  std::vector<Stream*> children;
  for (Stream& stream : streams) {
    if (stream.plain->shared_prefix > 0) children.push_back(&stream);
  }
  std::sort(children.begin(), children.end(), [](const Stream* a, const Stream* b) {
    return a->plain->shared_prefix < b->plain->shared_prefix;
  });
  for (Stream* child : children) {
    const std::size_t prefix = child->plain->shared_prefix;
    if (parent.done() < prefix) {
      // At times beyond the prefix: then the child is cut back.
      const std::size_t end =
          random.Chance(1, 2) ? prefix : random.Between(prefix, parent.plain->tokens.size());
      KV_TRY(runner.Advance(parent, end, random));
    }
    child->cache = parent.cache.Fork();
    child->cache.Truncate(prefix);
  }
  return base::Success();
}

}  // namespace

base::Result<void> RunKvCacheAxis(const AxisTrial& trial) {
  const PlainSequence& plain = AnySequence(trial);
  KV_TRY(const auto pool, trial.Cache({}));
  Stream stream = {&plain, kvcache::CachedSequence(*pool)};
  VerifyRunner runner(VerifyAxis::kKvCache, trial.model, trial.teams.Of(1), trial.comparer);
  constexpr std::size_t kRecomputed = 8;
  for (std::size_t i = 0; i < kRecomputed; ++i) {
    const std::size_t length =
        i == 0 ? plain.tokens.size() : trial.random.Between(1, plain.tokens.size());
    stream.cache.Reset();
    KV_TRY(runner.Step({&stream, length, 1}));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    KV_TRY(CutBack(runner, stream, trial.model.shape().vocab, trial.random));
    KV_TRY(runner.Advance(stream, plain.tokens.size(), trial.random));
  }
  return base::Success();
}

base::Result<void> RunPrefillChunkAxis(const AxisTrial& trial) {
  const PlainSequence& plain = AnySequence(trial);
  KV_TRY(const auto pool, trial.Cache({}));
  VerifyRunner runner(VerifyAxis::kPrefillChunk, trial.model, trial.teams.Of(1), trial.comparer);
  const std::size_t length = plain.tokens.size();
  // The whole sequence, one size throughout, a size for each step.
  for (const std::size_t chunk :
       {length, static_cast<std::size_t>(trial.random.Between(1, length)), std::size_t{0}}) {
    Stream stream = {&plain, kvcache::CachedSequence(*pool)};
    while (stream.left() > 0) {
      const std::size_t count =
          chunk == 0 ? trial.random.Between(1, stream.left()) : std::min(chunk, stream.left());
      KV_TRY(runner.Step({&stream, count, count}));
    }
  }
  return base::Success();
}

base::Result<void> RunBatchAxis(const AxisTrial& trial) {
  KV_TRY(const auto pool, trial.Cache({.sequences = trial.world.size()}));
  std::vector<Stream> streams = StreamsOf(trial.world, *pool);
  VerifyRunner runner(VerifyAxis::kBatch, trial.model, trial.teams.Of(1), trial.comparer);
  while (AnyLeft(streams)) {
    KV_TRY(runner.Step(AnyFeeds(streams, trial.random)));
  }
  return base::Success();
}

base::Result<void> RunThreadsAxis(const AxisTrial& trial) {
  const std::size_t threads = trial.random.Between(2, TeamSet::kMaxThreads);
  return RunAlone(VerifyAxis::kThreads, trial, AnySequence(trial), trial.teams.Of(threads),
                  kvcache::kDefaultBlockTokens);
}

base::Result<void> RunBlockAxis(const AxisTrial& trial) {
  return RunAlone(VerifyAxis::kBlock, trial, AnySequence(trial), trial.teams.Of(1),
                  AnyBlockTokens(trial, 1, 32));
}

base::Result<void> RunPlacementAxis(const AxisTrial& trial) {
  KV_TRY(const auto pool,
         trial.Cache({.sequences = trial.world.size(), .placement_seed = trial.random.Next()}));
  std::vector<Stream> streams = StreamsOf(trial.world, *pool);
  VerifyRunner runner(VerifyAxis::kPlacement, trial.model, trial.teams.Of(1), trial.comparer);
  // Turn by turn, so that blocks of one sequence lie between those of others.
  while (AnyLeft(streams)) {
    for (Stream& stream : streams) {
      if (stream.left() == 0) continue;
      const std::size_t count = trial.random.Between(1, std::min<std::size_t>(stream.left(), 24));
      KV_TRY(runner.Step({&stream, count, count}));
    }
  }
  return base::Success();
}

base::Result<void> RunForkAxis(const AxisTrial& trial) {
  KV_TRY(const auto pool, trial.Cache({.sequences = trial.world.size()}));
  std::vector<Stream> streams = StreamsOf(trial.world, *pool);
  VerifyRunner runner(VerifyAxis::kFork, trial.model, trial.teams.Of(1), trial.comparer);
  KV_TRY(GrowAndFork(runner, streams, trial.random));
  // Those that share nothing belong to other axes; the parent at times goes first.
  std::vector<Stream*> open;
  for (Stream& stream : streams) {
    if (stream.plain->shared_prefix > 0) open.push_back(&stream);
  }
  if (trial.random.Chance(1, 2)) {
    streams.front().cache.Reset();
  } else {
    open.push_back(&streams.front());
  }
  while (!open.empty()) {
    Stream* stream = open[trial.random.Below(open.size())];
    if (stream->left() == 0) {
      open.erase(std::find(open.begin(), open.end(), stream));
      continue;
    }
    const std::size_t count = trial.random.Between(1, std::min<std::size_t>(stream->left(), 4));
    KV_TRY(runner.Step({stream, count, count}));
  }
  return base::Success();
}

base::Result<void> RunSimdAxis(const AxisTrial& trial) {
  const PlainSequence& plain = AnySequence(trial);
  const std::vector<kernels::Target> targets = kernels::AvailableTargets();
  // The plain run took the first: it is compared only where there is no other.
  for (std::size_t i = targets.size() > 1 ? 1 : 0; i < targets.size(); ++i) {
    const ForcedTarget forced(targets[i]);
    KV_TRY(
        RunAlone(VerifyAxis::kSimd, trial, plain, trial.teams.Of(1), kvcache::kDefaultBlockTokens));
  }
  return base::Success();
}

base::Result<void> RunMixedAxis(const AxisTrial& trial) {
  RandomStream& random = trial.random;
  const std::vector<kernels::Target> targets = kernels::AvailableTargets();
  const ForcedTarget forced(targets[random.Below(targets.size())]);
  KV_TRY(const auto pool,
         trial.Cache({.block_tokens = AnyBlockTokens(trial, trial.world.size(), 16),
                      .sequences = trial.world.size(),
                      .placement_seed = random.Next()}));
  std::vector<Stream> streams = StreamsOf(trial.world, *pool);
  VerifyRunner runner(VerifyAxis::kMixed, trial.model,
                      trial.teams.Of(random.Between(1, TeamSet::kMaxThreads)), trial.comparer);
  KV_TRY(GrowAndFork(runner, streams, random));
  std::size_t cuts = 4;  // Few, so that the end is reached.
  while (AnyLeft(streams)) {
    KV_TRY(runner.Step(AnyFeeds(streams, random)));
    if (cuts == 0 || !random.Chance(1, 4)) continue;
    --cuts;
    Stream& stream = streams[random.Below(streams.size())];
    KV_TRY(CutBack(runner, stream, trial.model.shape().vocab, random));
  }
  return base::Success();
}

base::Result<void> RunTrainerAxis(const AxisTrial& trial, const SequenceForward& trainer) {
  const PlainSequence& plain = AnySequence(trial);
  const std::size_t vocab = trial.model.shape().vocab;
  std::vector<float> logits(plain.tokens.size() * vocab);
  KV_TRY(trainer(plain.tokens, logits));
  for (std::size_t t = 0; t < plain.tokens.size(); ++t) {
    trial.comparer.Compare(VerifyAxis::kTrainer, plain, t,
                           std::span(logits).subspan(t * vocab, vocab));
  }
  return base::Success();
}

}  // namespace kvasir::eval
