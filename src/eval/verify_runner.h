// Runs steps of a model over sequences of a trial's world, and compares every row of logits.
#ifndef KVASIR_EVAL_VERIFY_RUNNER_H_
#define KVASIR_EVAL_VERIFY_RUNNER_H_

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "eval/verify.h"
#include "eval/verify_world.h"
#include "kvcache/sequence.h"
#include "model/model.h"

namespace kvasir::eval {

// Notes comparisons of rows in a report. Single-threaded.
class RowComparer {
 public:
  RowComparer(VerifyReport& report, std::uint64_t vocab) : report_(report), vocab_(vocab) {}

  // Counts what follows under this axis, whatever it is compared for; null: no longer. A mismatch
  // is told with the circumstances.
  void CountAs(std::optional<VerifyAxis> axis, std::string circumstances = {}) {
    count_as_ = axis;
    circumstances_ = std::move(circumstances);
  }

  // Compares row [vocab] with the plain run's at this position, if that was kept.
  void Compare(VerifyAxis axis, const PlainSequence& plain, std::size_t position,
               std::span<const float> row);

 private:
  VerifyReport& report_;
  const std::uint64_t vocab_;
  std::optional<VerifyAxis> count_as_;
  std::string circumstances_;
};

// A sequence of the world on its way through a cache.
struct Stream {
  const PlainSequence* plain;
  kvcache::CachedSequence cache;

  std::size_t done() const { return cache.length(); }
  std::size_t left() const { return plain->tokens.size() - cache.length(); }
};

// One stream's part of a step.
struct Feed {
  Stream* stream;
  std::size_t count;       // Tokens; 1 … left().
  std::size_t logit_rows;  // At most count.
};

// Teams of 1 to 8 threads, made when first used. Single-threaded.
class TeamSet {
 public:
  static constexpr std::size_t kMaxThreads = 8;
  base::ThreadTeam& Of(std::size_t threads);

 private:
  std::array<std::unique_ptr<base::ThreadTeam>, kMaxThreads> teams_;
};

// One arrangement of work. Single-threaded.
class VerifyRunner {
 public:
  VerifyRunner(VerifyAxis axis, const model::Model& model, base::ThreadTeam& team,
               RowComparer& comparer)
      : axis_(axis), model_(model), team_(team), comparer_(comparer) {}

  // One Forward over these feeds, whose streams must differ; then compares the rows. Asks for fewer
  // rows where a step's buffers would not hold them all.
  base::Result<void> Step(std::span<const Feed> feeds);
  base::Result<void> Step(const Feed& feed) { return Step({&feed, 1}); }
  // The tokens up to `end` in steps of random sizes, all rows compared.
  base::Result<void> Advance(Stream& stream, std::size_t end, RandomStream& random);
  // Tokens that are not the sequence's: they are for truncating away.
  base::Result<void> Pollute(Stream& stream, std::span<const base::TokenId> tokens);

 private:
  const VerifyAxis axis_;
  const model::Model& model_;
  base::ThreadTeam& team_;
  RowComparer& comparer_;
  model::Scratch scratch_;
  std::vector<model::BatchItem> items_;
  std::vector<float> logits_;
};

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_VERIFY_RUNNER_H_
