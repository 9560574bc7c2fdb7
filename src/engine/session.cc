#include "engine/session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "kvcache/prompt_log_probs.h"
#include "sampling/log_probs.h"

namespace kvasir::engine {

using Clock = std::chrono::steady_clock;

namespace {

// Rows of logits that a step holds to score a prompt: they are [vocab] numbers each.
constexpr std::size_t kMostScoredRows = 64;

}  // namespace

Session::Session(Generator& generator, std::span<const GenerateRequest> requests,
                 const Observer& observer)
    : generator_(generator),
      cache_(*generator.cache_),
      requests_(requests),
      observer_(observer),
      vocab_(generator.model_.shape().vocab) {
  report_.results.resize(requests.size());
  report_.bytes_per_token = cache_.geometry().bytes_per_token();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    report_.usage.prompt_tokens += requests[i].prompt.size();
    report_.results[i].choices.resize(requests[i].choices);
    drawable_.push_back(generator.drawable_);
    if (!requests[i].named_end_tokens) continue;
    for (const TokenId token : requests[i].end_tokens) drawable_.back().Allow(token);
  }
}

base::Result<GenerateReport> Session::Run() {
  while (true) {
    KV_TRY(Admit());
    if (running_.empty()) break;
    KV_TRY(Step());
  }
  report_.idle_bytes = cache_.pool_stats().idle_bytes();
  return std::move(report_);
}

std::unique_ptr<Choice> Session::MakeChoice(std::size_t request, std::uint64_t number) const {
  const GenerateRequest& wanted = requests_[request];
  return std::make_unique<Choice>(wanted, wanted.first_choice + static_cast<std::uint32_t>(number),
                                  generator_.model_.shape(), generator_.vocabulary_,
                                  drawable_[request]);
}

bool Session::HasRoomFor(std::size_t tokens) const {
  const kvcache::BlockPoolStats pool = cache_.pool_stats();
  return cache_.geometry().BlocksFor(tokens) <= pool.capacity_blocks - pool.live_blocks;
}

base::Result<bool> Session::ResumeWaiting() {
  while (!waiting_.empty() && running_.size() < generator_.options_.max_batch) {
    Running& next = *waiting_.front();
    if (!running_.empty() && !HasRoomFor(next.choice->text().size() + 1)) return false;
    KV_TRY(cache_.Resume(next.sequence.id()));
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return waiting_.empty();
}

base::Result<void> Session::Admit() {
  KV_TRY(const bool all_resumed, ResumeWaiting());
  if (!all_resumed) return base::Success();
  while (running_.size() < generator_.options_.max_batch) {
    if (!stems_.empty()) {
      Running& stem = *stems_.front();
      // The last, partly filled block may be copied.
      if (!running_.empty() && !HasRoomFor(1)) break;
      KV_TRY(StartFromStem(stem));
      if (stem.next_choice == requests_[stem.request].choices) stems_.pop_front();
    } else if (next_request_ < requests_.size()) {
      if (!running_.empty() && !HasRoomFor(requests_[next_request_].prompt.size() + 1)) break;
      StartRequest();
    } else {
      break;
    }
  }
  return base::Success();
}

base::Result<void> Session::StartFromStem(Running& stem) {
  auto choice = MakeChoice(stem.request, stem.next_choice++);
  for (std::size_t begin = 0; begin < stem.rows.size() && !choice->finished(); begin += vocab_) {
    KV_TRY(Give(stem, *choice, std::span(stem.rows).subspan(begin, vocab_)));
  }
  if (choice->finished()) {
    StoreResult(stem.request, *choice);
    return base::Success();
  }
  // A stem that gave its blocks back is found in the cache, or computed again.
  const kvcache::SequenceId id = stem.sequence.id();
  const kvcache::SequenceId fork = cache_.is_preempted(id) ? cache_.Create() : cache_.Fork(id);
  running_.push_back(std::make_unique<Running>(
      Running{stem.request, std::move(choice), SequenceLease(cache_, fork), false, false, {}, 0}));
  return base::Success();
}

void Session::StartRequest() {
  const std::size_t request = next_request_;
  auto choice = MakeChoice(request, next_choice_);
  // Choices of a request begin alike: if one is finished at its start, all are.
  const bool stem =
      generator_.options_.use_cache && requests_[request].choices > 1 && !choice->finished();
  if (choice->finished()) {
    StoreResult(request, *choice);
  } else {
    running_.push_back(std::make_unique<Running>(Running{
        request, std::move(choice), SequenceLease(cache_, cache_.Create()), stem, true, {}, 0}));
    running_.back()->scores_prompt = requests_[request].prompt_logprobs &&
                                     requests_[request].prompt.size() > 1 && next_choice_ == 0;
  }
  ++next_choice_;
  if (stem || next_choice_ == requests_[request].choices) {
    ++next_request_;
    next_choice_ = 0;
  }
}

bool Session::StartFromCache(Running& running, const std::vector<base::Hash128>& claimed) {
  const kvcache::SequenceId id = running.sequence.id();
  const Choice& choice = *running.choice;
  const std::size_t found = cache_.TakePrefix(id, choice.text().first(choice.first_row()));
  if (running.scores_prompt) ScoreFromCache(running, found);
  const auto name = cache_.NextBlockName(id, choice.text().first(choice.target()));
  if (name && std::find(claimed.begin(), claimed.end(), *name) != claimed.end()) {
    cache_.Truncate(id, 0);
    return false;
  }
  if (running.fresh) report_.usage.cached_tokens += cache_.cache(id).length();
  running.fresh = false;
  return true;
}

void Session::ScoreFromCache(Running& running, std::size_t found) {
  const kvcache::SequenceId id = running.sequence.id();
  const GenerateRequest& request = requests_[running.request];
  const std::size_t top = std::min(request.top_logprobs, vocab_);
  for (std::size_t t = running.prompt.size() + 1; t < found; ++t) {
    const kvcache::PromptLogProbs* kept = cache_.LogProbs(id, t);
    if (kept == nullptr || kept->best.size() < top) break;
    GeneratedToken token = {.id = request.prompt[t], .logprob = kept->logprob};
    for (const kvcache::KeptLogProb& other : std::span(kept->best).first(top)) {
      token.top.push_back({other.id, other.logprob, other.prob});
    }
    running.prompt.push_back(std::move(token));
    running.prompt_kept = running.prompt.size();
  }
  cache_.Truncate(id, std::min(found, running.prompt.size()));
}

std::vector<Session::Share> Session::PlanStep() {
  std::vector<Share> shares;
  std::vector<base::Hash128> claimed;  // Blocks that this step's sequences work on.
  std::size_t budget = generator_.options_.step_tokens;
  for (const auto& running : running_) {
    if (budget == 0) break;
    const Choice& choice = *running->choice;
    const kvcache::SequenceId id = running->sequence.id();
    if (cache_.cache(id).blocks().empty() && !StartFromCache(*running, claimed)) continue;
    if (const auto name = cache_.NextBlockName(id, choice.text().first(choice.target()))) {
      claimed.push_back(*name);
    }
    const std::size_t begin = cache_.cache(id).length();
    std::size_t count = std::min(budget, choice.target() - begin);
    if (const std::uint64_t chunk = generator_.options_.prefill_chunk; chunk != 0) {
      count = static_cast<std::size_t>(std::min<std::uint64_t>(count, chunk));
    }
    if (running->scores_prompt) count = std::min(count, kMostScoredRows);
    budget -= count;
    const std::size_t end = begin + count;
    const std::size_t wanted = running->scores_prompt
                                   ? std::min(running->prompt.size(), choice.first_row())
                                   : choice.first_row();
    const std::size_t first_row = std::max(begin, wanted);
    shares.push_back({running.get(), begin, end, end > first_row ? end - first_row : 0,
                      end == choice.target(), !choice.has_tokens()});
  }
  return shares;
}

base::Result<void> Session::ReserveShares(std::vector<Share>& shares) {
  for (std::size_t i = 0; i < shares.size();) {  // GiveWay may drop shares, this one too.
    const Share& share = shares[i];
    const auto reserved =
        cache_.cache(share.running->sequence.id()).Reserve(share.end - share.begin);
    if (reserved) {
      ++i;
    } else if (!GiveWay(shares)) {
      return reserved.error();
    }
  }
  return base::Success();
}

bool Session::GiveWay(std::vector<Share>& shares) {
  for (auto stem = stems_.rbegin(); stem != stems_.rend(); ++stem) {
    const kvcache::SequenceId id = (*stem)->sequence.id();
    if (cache_.is_preempted(id)) continue;
    cache_.Preempt(id, kvcache::Preemption::kDrop);
    ++report_.preemptions;
    return true;
  }
  if (running_.size() <= 1) return false;
  Running& latest = *running_.back();
  cache_.Preempt(latest.sequence.id(), kvcache::Preemption::kDrop);
  ++report_.preemptions;
  std::erase_if(shares, [&](const Share& share) { return share.running == &latest; });
  waiting_.push_front(std::move(running_.back()));
  running_.pop_back();
  return true;
}

base::Result<void> Session::Step() {
  const auto start = Clock::now();
  std::vector<Share> shares = PlanStep();
  KV_TRY(ReserveShares(shares));
  std::vector<model::BatchItem> items;
  std::size_t rows = 0;
  for (const Share& share : shares) {
    items.push_back({&cache_.cache(share.running->sequence.id()),
                     share.running->choice->text().subspan(share.begin, share.end - share.begin),
                     share.rows});
    rows += share.rows;
  }
  if (generator_.logits_.size() < rows * vocab_) generator_.logits_.resize(rows * vocab_);
  const std::span<float> logits(generator_.logits_.data(), rows * vocab_);
  KV_TRY(generator_.model_.Forward(items, generator_.scratch_, generator_.team_, logits));

  for (const Share& share : shares) {  // Before a token is added to any text.
    cache_.Commit(share.running->sequence.id(),
                  share.running->choice->text().subspan(share.begin, share.end - share.begin));
  }
  settled_ = 0;
  std::size_t offset = 0;
  for (const Share& share : shares) {
    KV_TRY(TakeRows(share, logits.subspan(offset, share.rows * vocab_)));
    offset += share.rows * vocab_;
  }
  ++report_.steps;
  for (const Share& share : shares) {
    if (share.complete && !generator_.options_.use_cache) {
      cache_.Truncate(share.running->sequence.id(), 0);
    }
  }
  const std::chrono::duration<double, std::milli> elapsed = Clock::now() - start;
  Account(shares, elapsed.count());
  RemoveFinished();
  return base::Success();
}

base::Result<void> Session::TakeRows(const Share& share, std::span<const float> rows) {
  Running& running = *share.running;
  const std::size_t prompt_rows = requests_[running.request].prompt.size() - 1;
  std::size_t position = share.end - share.rows;
  for (std::size_t begin = 0; begin < rows.size(); begin += vocab_, ++position) {
    const std::span<const float> row = rows.subspan(begin, vocab_);
    if (position < prompt_rows) {
      KV_TRY(ScorePrompt(running, position, row));
    } else if (running.stem) {
      running.rows.insert(running.rows.end(), row.begin(), row.end());
    } else if (!running.choice->finished()) {  // A stop string may leave forced tokens over.
      KV_TRY(Give(running, *running.choice, row));
    }
  }
  if (running.scores_prompt) KeepPromptScores(running);
  return base::Success();
}

base::Result<void> Session::ScorePrompt(Running& running, std::size_t position,
                                        std::span<const float> row) {
  if (position < running.prompt.size()) return base::Success();  // Scored before it gave way.
  KV_CHECK(position == running.prompt.size());
  const GenerateRequest& request = requests_[running.request];
  GeneratedToken token = {.id = request.prompt[position + 1]};
  const auto logprob = sampling::LogProb(row, token.id);
  if (!logprob) return InRequest(running.request, AtPosition(position, logprob.error()));
  token.logprob = logprob.value();
  // As many as the cache keeps, so that they serve others too.
  const std::size_t most = std::max(request.top_logprobs, kvcache::kKeptAlternatives);
  KV_TRY(token.top, sampling::TopLogProbs(row, std::min(most, vocab_)));
  running.prompt.push_back(std::move(token));
  return base::Success();
}

void Session::KeepPromptScores(Running& running) {
  const kvcache::SequenceId id = running.sequence.id();
  const std::size_t top = requests_[running.request].top_logprobs;
  // The token at t is scored by the row before it, and has a place in the cache only after that.
  while (running.prompt_kept < running.prompt.size() &&
         running.prompt_kept + 1 < cache_.cache(id).length()) {
    GeneratedToken& token = running.prompt[running.prompt_kept++];
    kvcache::PromptLogProbs kept = {.logprob = token.logprob};
    for (const sampling::TokenLogProb& other :
         std::span(token.top).first(std::min(token.top.size(), kvcache::kKeptAlternatives))) {
      kept.best.push_back({other.id, other.logprob, other.prob});
    }
    cache_.KeepLogProbs(id, running.prompt_kept, std::move(kept));
    token.top.resize(std::min(token.top.size(), top));
  }
  if (running.prompt_kept + 1 < requests_[running.request].prompt.size()) return;
  report_.results[running.request].prompt = std::move(running.prompt);
  running.scores_prompt = false;
}

base::Result<void> Session::Give(const Running& running, Choice& choice,
                                 std::span<const float> row) {
  const std::uint32_t index = choice.index();
  if (observer_.on_logits) {
    observer_.on_logits({running.request, index, choice.first_row(), row});
  }
  ++settled_;
  const auto on_token = [&](const GeneratedToken& token,
                            std::string_view text) -> base::Result<void> {
    if (!observer_.on_token) return base::Success();
    return observer_.on_token({running.request, index, token, text, choice.finish()});
  };
  const auto taken = choice.Take(row, on_token);
  if (!taken) return InRequest(running.request, taken.error());
  return base::Success();
}

void Session::Account(std::span<const Share> shares, double elapsed_ms) {
  StepTrace trace;
  std::uint64_t prefill = 0;
  for (const Share& share : shares) {
    trace.work += WorkOf(share.begin, share.end);
    if (share.complete) trace.work_without_cache += WorkOf(0, share.end);
    if (share.prefill) prefill += share.end - share.begin;
  }
  const double part = static_cast<double>(prefill) / static_cast<double>(trace.work.positions);
  report_.timing.prefill_ms += elapsed_ms * part;
  report_.timing.decode_ms += elapsed_ms * (1.0 - part);
  report_.work += trace.work;
  const kvcache::BlockPoolStats pool = cache_.pool_stats();
  trace.held_bytes = pool.live_bytes();
  trace.shared_bytes = pool.shared_bytes();
  trace.idle_bytes = pool.idle_bytes();
  report_.peak_shared_bytes = std::max(report_.peak_shared_bytes, pool.shared_bytes());
  report_.peak_saved_bytes = std::max(report_.peak_saved_bytes, pool.saved_bytes());
  report_.peak_bytes = std::max(report_.peak_bytes, trace.held_bytes);
  if (!observer_.on_step) return;
  trace.step = report_.steps;
  trace.sequences = shares.size();
  trace.tokens = settled_;
  const std::uint32_t layers = cache_.geometry().layers();
  trace.held_bytes_per_layer.assign(layers, trace.held_bytes / layers);  // Layers are alike.
  trace.waste_bytes = cache_.report().waste_bytes;
  trace.tables = Tables();
  observer_.on_step(trace);
  report_.trace.push_back(std::move(trace));
}

std::vector<SequenceTrace> Session::Tables() const {
  std::vector<SequenceTrace> tables;
  const auto add = [&](const std::unique_ptr<Running>& running) {
    SequenceTrace& table = tables.emplace_back();
    table.request = running->request;
    table.choice = running->choice->index();
    table.stem = running->stem;
    const kvcache::SequenceId id = running->sequence.id();
    const kvcache::CachedSequence& sequence = std::as_const(cache_).cache(id);
    table.length = sequence.length();
    for (const kvcache::BlockId block : sequence.blocks()) {
      table.blocks.push_back(block.index());
    }
  };
  std::for_each(stems_.begin(), stems_.end(), add);
  std::for_each(running_.begin(), running_.end(), add);
  return tables;
}

void Session::RemoveFinished() {
  for (auto& running : running_) {
    if (running->stem &&
        cache_.cache(running->sequence.id()).length() == running->choice->target()) {
      stems_.push_back(std::move(running));
    } else if (running->choice->finished()) {
      StoreResult(running->request, *running->choice);
      running.reset();
    }
  }
  std::erase(running_, nullptr);
}

void Session::StoreResult(std::size_t request, Choice& choice) {
  ChoiceResult result = choice.TakeResult();
  report_.usage.completion_tokens += result.tokens.size();
  const std::uint32_t number = result.index - requests_[request].first_choice;
  report_.results[request].choices[number] = std::move(result);
}

base::Error Session::InRequest(std::size_t request, base::Error error) const {
  if (requests_.size() > 1) {
    error.message = fmt::format("prompt {}: {}", request + 1, error.message);
  }
  return error;
}

}  // namespace kvasir::engine
