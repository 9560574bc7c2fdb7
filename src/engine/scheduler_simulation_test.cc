// Whole schedules from seeds: random arrivals, cancels, deadlines and budgets, on a clock that the
// test moves. KVASIR_SIMULATION_SEEDS sets how many; KVASIR_SIMULATION_SEED runs one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "constraints/acrostic.h"
#include "engine/engine_test_listener.h"
#include "engine/engine_test_models.h"
#include "engine/scheduler.h"

namespace kvasir::engine {
namespace {

constexpr std::uint64_t kContext = 56;
constexpr std::size_t kKinds = 96;  // Different requests, of which every seed takes some.

std::uint64_t NumberFromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The model, the requests, and what each gives alone.
class World {
 public:
  World()
      : vocabulary_(VocabularyOf("\n。，春眠不觉晓处闻啼鸟夜来风雨声花落知多少")),
        model_(TinyGpt2(vocabulary_.size(), kContext)) {
    std::mt19937 random(1);
    for (std::size_t i = 0; i < kKinds; ++i) requests_.push_back(SomeRequest(random));
    for (const GenerateRequest& request : requests_) {
      const auto scheduler =
          Scheduler::Make(*model_, vocabulary_, team_, {.work = {.share_prefixes = false}}).value();
      RecordingListener& alone = alone_.emplace_back();
      EXPECT_TRUE(scheduler->Submit({.generate = request}, &alone));
      while (scheduler->Step()) {
      }
      EXPECT_TRUE(alone.done && !alone.error);
    }
  }

  std::unique_ptr<Scheduler> Make(const SchedulerOptions& options) {
    return Scheduler::Make(*model_, vocabulary_, team_, options).value();
  }
  const GenerateRequest& request(std::size_t kind) const { return requests_[kind]; }
  const RecordingListener& alone(std::size_t kind) const { return alone_[kind]; }
  std::uint64_t block_bytes() const { return 16 * 2 * 24 * 2 * 4; }

 private:
  // Prompts of a few families, which part at different places.
  std::vector<TokenId> SomePrompt(std::mt19937& random) const {
    const TokenId first = vocabulary_.FindPiece("\n").value();
    const std::size_t parting = random() % 40;
    const std::size_t salt = random() % 4;
    std::vector<TokenId> ids(random() % 8 == 0 ? 1 + random() % kContext : 1 + random() % 40);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::size_t mixed = i * 7 + (i >= parting ? salt * 5 : 0);
      ids[i] = first + static_cast<TokenId>(mixed % (vocabulary_.size() - first));
    }
    return ids;
  }

  GenerateRequest SomeRequest(std::mt19937& random) const {
    GenerateRequest request = {
        .prompt = SomePrompt(random), .max_tokens = random() % 20, .seed = random()};
    request.choices = random() % 3 == 0 ? 2 + random() % 4 : 1;
    request.first_choice = random() % 2 == 0 ? 0 : static_cast<std::uint32_t>(random() % 100);
    request.top_logprobs = random() % 3 == 0 ? random() % 4 : 0;
    request.prompt_logprobs = random() % 4 == 0;
    const std::array<float, 3> temperatures = {0.0f, 0.8f, 50.0f};
    request.sampling.temperature = temperatures[random() % temperatures.size()];
    switch (random() % 6) {
      case 0:
        request.sampling.presence_penalty = 1.0f;
        request.sampling.frequency_penalty = 0.5f;
        break;
      case 1:
        request.sampling.logit_bias = {{vocabulary_.FindPiece("春").value(), 3.0f}};
        request.sampling.top_k = 5;
        break;
      case 2:
        request.stops = {"春", "花落"};
        break;
      case 3:
        request.end_tokens = {vocabulary_.FindPiece("。").value()};
        request.named_end_tokens = true;
        break;
      case 4:
        request.constraint = constraints::MakeAcrosticMatcher(vocabulary_, "春夜花落", 5).value();
        request.max_tokens = 30;
        break;
      default:
        break;
    }
    return request;
  }

  tokenizer::Vocabulary vocabulary_;
  std::unique_ptr<model::Gpt2Model> model_;
  base::ThreadTeam team_{1};
  std::vector<GenerateRequest> requests_;
  std::deque<RecordingListener> alone_;
};

// One schedule, checked at every step.
class Simulation {
 public:
  Simulation(World& world, std::uint64_t seed) : world_(world), random_(seed) {
    options_ = SomeOptions();
    scheduler_ = world.Make(options_);
  }

  void Run() {
    const std::size_t arrivals = 1 + random_() % 14;
    const std::size_t most_steps = 20'000;
    std::size_t steps = 0;
    while (submitted_.size() < arrivals || scheduler_->has_work()) {
      while (submitted_.size() < arrivals && random_() % 3 != 0) Submit();
      if (random_() % 8 == 0) CancelOne();
      clock_.now_us += random_() % 100;
      Step();
      if (::testing::Test::HasFailure()) return;
      ASSERT_LT(++steps, most_steps) << "the work has no end";
    }
    for (const auto& request : submitted_) CheckEnded(*request);
    EXPECT_EQ(scheduler_->metrics().cache.live_blocks, 0u);
    EXPECT_EQ(scheduler_->metrics().waiting.requests, 0u);
    EXPECT_EQ(scheduler_->metrics().clients, 0u);
  }

  // Of everything that was told, in order.
  std::uint64_t history() const { return history_; }
  std::uint64_t preemptions() const { return scheduler_->metrics().preemptions; }
  std::uint64_t cached() const { return scheduler_->metrics().cached_tokens; }
  std::uint64_t early() const { return early_; }

 private:
  struct Submitted {
    std::size_t kind;
    EngineRequest request;
    std::optional<RequestId> id = {};  // Null: refused.
    RecordingListener listener = {};
    bool ours = false;                                        // We ended it.
    std::map<std::uint32_t, std::size_t> tokens_before = {};  // Of each choice, before a step.
  };

  SchedulerOptions SomeOptions() {
    SchedulerOptions options;
    options.clock = &clock_;
    options.work.max_batch = 1 + random_() % 8;
    options.work.step_tokens = random_() % 3 == 0 ? 1 + random_() % 8 : 8 + random_() % 60;
    options.work.prefill_chunk = random_() % 3 == 0 ? 1 + random_() % 12 : 0;
    options.work.use_cache = random_() % 8 != 0;
    if (!options.work.use_cache) options.work.step_tokens += kContext;
    options.work.share_prefixes = random_() % 8 != 0;
    if (random_() % 3 == 0) options.work.placement_seed = random_();
    if (random_() % 2 == 0) {  // From what holds the longest text alone.
      options.work.kv_budget_bytes = (4 + random_() % 8) * world_.block_bytes();
    }
    options.busy_step_tokens = random_() % 2 == 0 ? 1 + random_() % 20 : 0;
    options.busy_step_time = random_() % 2 == 0 ? 1 + static_cast<double>(random_() % 3) : 0;
    options.fairness_quantum = 1 + random_() % 50;
    if (random_() % 4 == 0) options.waiting.requests = 1 + random_() % 4;
    return options;
  }

  void Submit() {
    Submitted& next = *submitted_.emplace_back(std::make_unique<Submitted>());
    next.kind = random_() % kKinds;
    next.request = {.generate = world_.request(next.kind),
                    .client = std::string(1, static_cast<char>('a' + random_() % 3)),
                    .cache_salt = random_() % 4 == 0 ? "tenant" : ""};
    if (random_() % 6 == 0) next.request.deadline_us = clock_.now_us + random_() % 2000;
    const bool cancels_itself = random_() % 12 == 0;
    next.listener.on_token = [this, &next, cancels_itself](const TokenStep& step) {
      Note({static_cast<std::uint64_t>(next.id ? *next.id : RequestId{}), step.choice,
            step.token.id});
      if (!cancels_itself || next.listener.choices.at(step.choice).tokens.size() != 3) return;
      next.ours = scheduler_->Cancel(*next.id) || next.ours;
    };
    const auto id = scheduler_->Submit(next.request, &next.listener);
    if (id) {
      next.id = id.value();
    } else {
      EXPECT_EQ(id.error().code, base::ErrorCode::kExhausted);
    }
  }

  void CancelOne() {
    if (submitted_.empty()) return;
    Submitted& one = *submitted_[random_() % submitted_.size()];
    if (!one.id) return;
    const bool was_done = one.listener.done;
    EXPECT_EQ(scheduler_->Cancel(*one.id), !was_done);
    one.ours = one.ours || !was_done;
    EXPECT_TRUE(one.listener.done);
    for (const SequenceSnapshot& sequence : scheduler_->Sequences()) {
      EXPECT_NE(sequence.request, *one.id) << "a cancelled request holds blocks";
    }
    scheduler_->CheckInvariants();
  }

  void Step() {
    for (const auto& request : submitted_) {
      request->tokens_before.clear();
      for (const auto& [index, choice] : request->listener.choices) {
        request->tokens_before[index] = choice.tokens.size();
      }
    }
    const bool more = scheduler_->Step();
    Note({scheduler_->last_step().work.positions, scheduler_->last_step().sequences, more});
    EXPECT_EQ(more, scheduler_->has_work());
    scheduler_->CheckInvariants();
    EXPECT_LE(scheduler_->last_step().work.positions, options_.work.step_tokens);
    EXPECT_LE(scheduler_->last_step().sequences, options_.work.max_batch);
    if (options_.work.use_cache && preemptions() == 0) CheckThatDecodingWentOn();
  }

  // Every choice that had a token, and has not ended, has one more.
  void CheckThatDecodingWentOn() const {
    for (const auto& request : submitted_) {
      if (request->listener.done) continue;
      for (const auto& [index, before] : request->tokens_before) {
        const ChoiceBits& choice = request->listener.choices.at(index);
        if (before > 0 && !choice.finish) {
          EXPECT_GT(choice.tokens.size(), before);
        }
      }
    }
  }

  void CheckEnded(const Submitted& one) {
    if (!one.id) {
      EXPECT_TRUE(!one.listener.done && one.listener.choices.empty());
      return;
    }
    EXPECT_TRUE(one.listener.done);
    EXPECT_FALSE(one.listener.error);
    const RecordingListener& alone = world_.alone(one.kind);
    ASSERT_EQ(one.listener.choices.size(), one.request.generate.choices);
    bool whole = true;
    for (const auto& [index, choice] : one.listener.choices) {
      const bool early =
          choice.finish == FinishReason::kCancelled || choice.finish == FinishReason::kDeadline;
      whole = whole && !early;
      if (early) {
        ++early_;
        EXPECT_TRUE(choice.IsBeginningOf(alone.choices.at(index)));
        const bool by_us = choice.finish == FinishReason::kCancelled;
        EXPECT_TRUE(by_us ? one.ours : one.request.deadline_us.has_value());
      } else {
        EXPECT_EQ(choice, alone.choices.at(index)) << "kind " << one.kind;
      }
    }
    if (whole) {
      EXPECT_EQ(one.listener.prompt, alone.prompt);
    }
  }

  void Note(std::array<std::uint64_t, 3> event) {
    history_ = base::HashSpan64(std::span<const std::uint64_t>(event), history_);
  }

  World& world_;
  std::mt19937_64 random_;
  FakeClock clock_;
  SchedulerOptions options_;
  std::vector<std::unique_ptr<Submitted>> submitted_;  // Outlive the scheduler.
  std::unique_ptr<Scheduler> scheduler_;
  std::uint64_t history_ = 0;
  std::uint64_t early_ = 0;
};

TEST(SchedulerSimulationTest, EveryScheduleGivesTheSameAnswers) {
  World world;
  const std::uint64_t one = NumberFromEnvironment("KVASIR_SIMULATION_SEED", 0);
  const std::uint64_t first = one != 0 ? one : 1;
  const std::uint64_t count = one != 0 ? 1 : NumberFromEnvironment("KVASIR_SIMULATION_SEEDS", 2000);
  std::uint64_t preemptions = 0;
  std::uint64_t cached = 0;
  std::uint64_t early = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(fmt::format("KVASIR_SIMULATION_SEED={}", seed));
    Simulation simulation(world, seed);
    simulation.Run();
    if (HasFailure()) return;
    preemptions += simulation.preemptions();
    cached += simulation.cached();
    early += simulation.early();
    if (seed % 50 != 0) continue;
    Simulation again(world, seed);
    again.Run();
    ASSERT_EQ(again.history(), simulation.history()) << "a seed fixes the whole schedule";
  }
  if (count < 100) return;
  // What the schedules must have gone through to mean anything.
  EXPECT_GT(preemptions, count / 10);
  EXPECT_GT(cached, count);
  EXPECT_GT(early, count / 10);
}

}  // namespace
}  // namespace kvasir::engine
