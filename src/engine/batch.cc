#include "engine/batch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "engine/step_grants.h"

namespace kvasir::engine {
namespace {

// A sequence waits for another's positions if they are at least so many: waiting costs it a step.
constexpr std::size_t kWorthWaiting = 8;
// For the store: by a sequence that may find there is nothing, and by a batch that has nothing else
// to do but to look for new requests.
constexpr std::chrono::microseconds kProbeWait{1000};
constexpr std::chrono::microseconds kIdleWait{5000};

std::size_t CommonPrefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

Batch::Batch(const model::Model& model, base::ThreadTeam& team, kvcache::SequenceManager& cache,
             const GeneratorOptions& options, const StepPace& pace)
    : model_(model),
      team_(team),
      cache_(cache),
      options_(options),
      slots_(static_cast<std::size_t>(std::min(options.max_batch, options.step_tokens))),
      pacer_(pace, options.step_tokens),
      vocab_(model.shape().vocab) {}

bool Batch::HasRoomFor(std::size_t tokens) const {
  return cache_.geometry().PeakBytes(tokens, options_.step_tokens) <=
         cache_.pool_stats().available_bytes();
}

void Batch::Add(std::unique_ptr<BatchSequence> sequence) {
  KV_CHECK(HasSlot());
  // A choice that begins with the rows of its stem, and has its blocks, goes on like any other.
  sequence->decoding = sequence->choice->has_tokens() && LengthOf(*sequence) > 0;
  running_.push_back(std::move(sequence));
}

bool Batch::ResumeWaiting() {
  while (!waiting_.empty() && HasSlot()) {
    BatchSequence& next = *waiting_.front();
    if (!running_.empty() && !HasRoomFor(next.choice->text().size() + 1)) return false;
    KV_CHECK(cache_.Resume(next.id()));  // Nothing was swapped, so it cannot fail.
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return waiting_.empty();
}

SequenceLease Batch::ForkStem(const BatchSequence& stem) {
  const kvcache::SequenceId id = stem.id();
  return {cache_,
          cache_.is_preempted(id) ? cache_.Create(stem.owner->tenant_salt) : cache_.Fork(id)};
}

std::vector<const BatchSequence*> Batch::Sequences() const {
  std::vector<const BatchSequence*> all;
  for (const auto& stem : stems_) all.push_back(stem.get());
  for (const auto& sequence : running_) all.push_back(sequence.get());
  return all;
}

// ------------------------------------------------------------------ planning

std::size_t Batch::LengthOf(const BatchSequence& sequence) const {
  return std::as_const(cache_).cache(sequence.id()).length();
}

std::span<const TokenId> Batch::Reusable(const BatchSequence& sequence) {
  return sequence.choice->text().first(sequence.choice->first_row());
}

std::size_t Batch::ShareWithTwin(BatchSequence& sequence, std::size_t found) {
  const BatchSequence* twin = nullptr;
  for (const BatchSequence* other : Sequences()) {
    if (other == &sequence || other->owner->tenant_salt != sequence.owner->tenant_salt) continue;
    const auto computed = cache_.tokens(other->id()).first(LengthOf(*other));
    const std::size_t common = CommonPrefix(Reusable(sequence), computed);
    if (common <= found) continue;
    found = common;
    twin = other;
  }
  if (twin == nullptr) return found;
  sequence.lease = SequenceLease(cache_, cache_.Fork(twin->id()));
  cache_.Truncate(sequence.id(), found);
  return LengthOf(sequence);
}

bool Batch::AnotherComputes(const BatchSequence& sequence,
                            std::span<BatchSequence* const> computing) const {
  const std::size_t have = LengthOf(sequence);
  if (Reusable(sequence).size() < have + kWorthWaiting) return false;
  return std::ranges::any_of(computing, [&](const BatchSequence* other) {
    if (other->owner->tenant_salt != sequence.owner->tenant_salt) return false;
    if (LengthOf(*other) < have) return false;
    const auto coming = other->choice->text().first(other->choice->target());
    return CommonPrefix(Reusable(sequence), coming) >= have + kWorthWaiting;
  });
}

bool Batch::StartFromCache(BatchSequence& sequence, std::span<BatchSequence* const> computing) {
  if (!options_.use_cache || !options_.share_prefixes) return true;
  std::size_t found = cache_.TakePrefix(sequence.id(), Reusable(sequence));
  found = ShareWithTwin(sequence, found);
  if (sequence.scores) sequence.scores->TakeFromCache(cache_, sequence.id(), found);
  if (!AnotherComputes(sequence, computing)) {
    cache_.CountHits(sequence.id());
    return true;
  }
  cache_.Truncate(sequence.id(), 0);
  return false;
}

// A store that has nothing says so at once: then no step is lost. But no text that is being
// continued waits for that.
bool Batch::AskStore(BatchSequence& sequence) {
  if (!options_.use_cache || !options_.share_prefixes || sequence.scores) return false;
  if (std::exchange(sequence.asked_store, true)) return false;
  sequence.restore =
      kvcache::PrefixRestore::Begin(cache_, sequence.id(), Reusable(sequence), cache_.store());
  if (!sequence.restore) return false;
  const bool anybody_decodes =
      std::ranges::any_of(running_, [](const auto& other) { return other->decoding; });
  if (!anybody_decodes) sequence.restore->Wait(kProbeWait);
  return WaitsForStore(sequence);
}

bool Batch::WaitsForStore(BatchSequence& sequence) {
  if (sequence.restore && sequence.restore->Poll()) sequence.restore.reset();
  return sequence.restore != nullptr;
}

void Batch::AwaitStore() {
  for (const auto& sequence : running_) {
    if (sequence->restore) return sequence->restore->Wait(kIdleWait);
  }
}

std::vector<StepShare> Batch::Plan() {
  std::vector<BatchSequence*> computing;
  std::vector<BatchSequence*> ready;
  std::vector<TokenWant> wants;
  std::size_t texts = 0;  // That are being continued.
  const auto holds_blocks = [&](const BatchSequence& sequence) {
    return std::as_const(cache_).cache(sequence.id()).entries() > 0;
  };
  for (const auto& sequence : running_) {
    if (sequence->start != sequence->choice->start()) {  // The text has rolled on.
      cache_.Truncate(sequence->id(), 0);
      sequence->start = sequence->choice->start();
      sequence->decoding = false;
    }
    if (sequence->restore || holds_blocks(*sequence)) computing.push_back(sequence.get());
  }
  for (const auto& sequence : running_) {
    if (WaitsForStore(*sequence)) continue;
    if (!holds_blocks(*sequence)) {
      if (!StartFromCache(*sequence, computing)) continue;
      computing.push_back(sequence.get());
      if (AskStore(*sequence)) continue;
    }
    std::size_t most = sequence->choice->target() - LengthOf(*sequence);
    if (options_.prefill_chunk != 0) {
      most = static_cast<std::size_t>(std::min<std::uint64_t>(most, options_.prefill_chunk));
    }
    if (sequence->scores) most = std::min(most, PromptScores::kMostRows);
    ready.push_back(sequence.get());
    wants.push_back({sequence->owner->account, most, sequence->decoding});
    if (sequence->decoding) ++texts;
  }
  const std::size_t budget = texts > 0 ? std::max(pacer_.Budget(texts), ready.size())
                                       : static_cast<std::size_t>(options_.step_tokens);
  const std::vector<std::size_t> grants = GrantTokens(wants, budget);
  std::vector<StepShare> shares;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (grants[i] > 0) shares.push_back(ShareOf(*ready[i], grants[i]));
  }
  return shares;
}

StepShare Batch::ShareOf(BatchSequence& sequence, std::size_t tokens) const {
  const std::size_t begin = LengthOf(sequence);
  StepShare share = {.sequence = &sequence,
                     .begin = begin,
                     .end = begin,
                     .rows = 0,
                     .complete = false,
                     .prefill = !sequence.choice->has_tokens(),
                     .decoding = sequence.decoding,
                     .cached = std::exchange(sequence.fresh, false) ? begin : 0};
  Resize(share, tokens);
  return share;
}

void Batch::Resize(StepShare& share, std::size_t tokens) {
  const BatchSequence& sequence = *share.sequence;
  const Choice& choice = *sequence.choice;
  const std::size_t wanted = sequence.scores
                                 ? std::min(sequence.scores->next_row(), choice.first_row())
                                 : choice.first_row();
  const std::size_t first_row = std::max(share.begin, wanted);
  share.end = share.begin + tokens;
  share.rows = share.end > first_row ? share.end - first_row : 0;
  share.complete = share.end == choice.target();
}

// ------------------------------------------------------------------ room

void Batch::Reserve(std::vector<StepShare>& shares) {
  for (std::size_t i = 0; i < shares.size();) {  // GiveWay may drop shares, this one too.
    StepShare& share = shares[i];
    const auto reserved = cache_.cache(share.sequence->id()).Reserve(share.end - share.begin);
    if (reserved) {
      ++i;
      continue;
    }
    if (GiveWay(shares)) continue;
    if (share.end - share.begin > 1) {
      Resize(share, (share.end - share.begin) / 2);
    } else {
      share.error = reserved.error();
      ++i;
    }
  }
}

bool Batch::GiveWay(std::vector<StepShare>& shares) {
  for (auto stem = stems_.rbegin(); stem != stems_.rend(); ++stem) {
    if (cache_.is_preempted((*stem)->id())) continue;
    cache_.Preempt((*stem)->id(), kvcache::Preemption::kDrop);
    ++preemptions_;
    return true;
  }
  if (running_.size() <= 1) return false;
  BatchSequence& latest = *running_.back();
  cache_.Preempt(latest.id(), kvcache::Preemption::kDrop);
  latest.decoding = false;
  latest.restore.reset();
  ++preemptions_;
  std::erase_if(shares, [&](const StepShare& share) { return share.sequence == &latest; });
  waiting_.push_front(std::move(running_.back()));
  running_.pop_back();
  return true;
}

// ------------------------------------------------------------------ computing

std::span<const TokenId> Batch::Tokens(const StepShare& share) {
  return share.sequence->choice->text().subspan(share.begin, share.end - share.begin);
}

std::vector<StepShare> Batch::Compute() {
  KV_CHECK(!running_.empty());
  std::vector<StepShare> shares = Plan();
  if (shares.empty()) AwaitStore();
  Reserve(shares);
  Forward(shares);
  for (StepShare& share : shares) {  // Before a token is added to any text.
    if (share.error) continue;
    cache_.Commit(share.sequence->id(), Tokens(share));
    // Forced tokens are settled before the first one is drawn.
    const bool settles = share.end > share.sequence->choice->first_row();
    if (settles && !share.sequence->stem && options_.use_cache) share.sequence->decoding = true;
  }
  return shares;
}

void Batch::Forward(std::vector<StepShare>& shares) {
  std::size_t rows = 0;
  for (const StepShare& share : shares) rows += share.error ? 0 : share.rows;
  if (logits_.size() < rows * vocab_) logits_.resize(rows * vocab_);
  std::vector<model::BatchItem> items;
  std::vector<StepShare*> of_item;
  std::size_t offset = 0;
  for (StepShare& share : shares) {
    if (share.error) continue;
    items.push_back({&cache_.cache(share.sequence->id()), Tokens(share), share.rows});
    of_item.push_back(&share);
    const std::span<float> logits = std::span(logits_).subspan(offset, share.rows * vocab_);
    share.logits = logits;
    offset += logits.size();
  }
  if (items.empty()) return;
  const auto all = model_.Forward(items, scratch_, team_, std::span(logits_).first(offset));
  if (all) return;
  // Each alone, so that whose fault it is not goes on.
  offset = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::size_t size = of_item[i]->rows * vocab_;
    const auto alone = items.size() == 1
                           ? all
                           : model_.Forward(std::span(items).subspan(i, 1), scratch_, team_,
                                            std::span(logits_).subspan(offset, size));
    if (!alone) of_item[i]->error = alone.error();
    offset += size;
  }
}

void Batch::Took(std::span<const StepShare> shares, std::uint64_t microseconds) {
  std::size_t texts = 0;
  std::size_t others = 0;
  for (const StepShare& share : shares) {
    if (share.error) return;  // Computed twice, each alone.
    if (share.decoding) ++texts;
    others += share.end - share.begin - (share.decoding ? 1 : 0);
  }
  pacer_.Took(texts, others, microseconds);
}

void Batch::Settle(std::span<const StepShare> shares) {
  if (options_.use_cache) return;
  for (const StepShare& share : shares) {
    if (share.complete && !share.error) cache_.Truncate(share.sequence->id(), 0);
  }
}

std::vector<BatchSequence*> Batch::TakeStems() {
  std::vector<BatchSequence*> taken;
  for (auto& sequence : running_) {
    if (!sequence->stem || LengthOf(*sequence) != sequence->choice->target()) continue;
    taken.push_back(sequence.get());
    stems_.push_back(std::move(sequence));
  }
  std::erase(running_, nullptr);
  return taken;
}

void Batch::DropEnded() {
  std::erase_if(running_, [](const auto& sequence) { return sequence->choice->finished(); });
}

void Batch::Drop(const ActiveRequest& owner) {
  const auto its = [&](const auto& sequence) { return sequence->owner == &owner; };
  std::erase_if(running_, its);
  std::erase_if(stems_, its);
  std::erase_if(waiting_, its);
}

std::vector<BatchSequence*> Batch::Of(const ActiveRequest& owner) const {
  std::vector<BatchSequence*> its;
  const auto collect = [&](const auto& sequences) {
    for (const auto& sequence : sequences) {
      if (sequence->owner == &owner) its.push_back(sequence.get());
    }
  };
  collect(stems_);
  collect(running_);
  collect(waiting_);
  return its;
}

void Batch::DropStem(const BatchSequence* stem) {
  std::erase_if(stems_, [&](const auto& other) { return other.get() == stem; });
}

}  // namespace kvasir::engine
