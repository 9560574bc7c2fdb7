// What texts share through the cache, and what a budget makes them give up: never a bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_test_models.h"
#include "engine/generator.h"
#include "engine/sequence_lease.h"
#include "engine/sequence_pool.h"

namespace kvasir::engine {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kContext = 96;
constexpr std::uint64_t kVocab = 40;
constexpr std::uint64_t kBytesPerToken = 2 * 24 * 2 * 4;  // Of TinyGpt2.
constexpr std::uint64_t kBlockBytes = 16 * kBytesPerToken;

// Tokens and log-probabilities of every choice, as bits.
using Bits = std::vector<std::pair<std::vector<TokenId>, std::vector<std::uint64_t>>>;

Bits BitsOf(const GenerateReport& report) {
  Bits bits;
  for (const RequestResult& result : report.results) {
    for (const ChoiceResult& choice : result.choices) {
      auto& [tokens, logprobs] = bits.emplace_back();
      for (const GeneratedToken& token : choice.tokens) {
        tokens.push_back(token.id);
        logprobs.push_back(std::bit_cast<std::uint64_t>(token.logprob));
      }
    }
  }
  return bits;
}

class SharingTest : public ::testing::Test {
 protected:
  SharingTest()
      : vocabulary_(VocabularyOf("\n。，春眠不觉晓处闻啼鸟夜来风雨声花落知多少")),
        model_(TinyGpt2(vocabulary_.size(), kContext)) {}

  std::unique_ptr<Generator> Make(const GeneratorOptions& options) {
    auto made = Generator::Make(*model_, vocabulary_, team_, options);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(made.value());
  }
  GenerateReport Run(Generator& generator, const std::vector<GenerateRequest>& requests,
                     const Observer& observer = {}) {
    auto report = generator.Run(requests, observer);
    EXPECT_TRUE(report) << report.error().message;
    return std::move(report.value());
  }
  GenerateReport Run(const std::vector<GenerateRequest>& requests,
                     const GeneratorOptions& options) {
    return Run(*Make(options), requests);
  }

  // `count` tokens, of which those from `parting` on depend on salt.
  std::vector<TokenId> Prompt(std::size_t count, std::size_t parting = 0,
                              std::size_t salt = 0) const {
    const TokenId first = vocabulary_.FindPiece("\n").value();
    std::vector<TokenId> ids;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t mixed = i * 7 + (i >= parting ? salt * 5 : 0);
      ids.push_back(first + static_cast<TokenId>(mixed % (vocabulary_.size() - first)));
    }
    return ids;
  }
  // Prompts of 50 tokens that part after 35, and one of its own.
  std::vector<GenerateRequest> Relatives() const {
    std::vector<GenerateRequest> requests;
    for (std::size_t salt = 1; salt <= 4; ++salt) {
      requests.push_back({.prompt = Prompt(50, 35, salt), .max_tokens = 12, .seed = salt});
    }
    requests.push_back({.prompt = Prompt(20, 0, 7), .max_tokens = 12, .seed = 9, .choices = 3});
    return requests;
  }

  tokenizer::Vocabulary vocabulary_;
  std::unique_ptr<model::Gpt2Model> model_;
  base::ThreadTeam team_{1};
};

TEST_F(SharingTest, PromptsOfOneRunComputeWhatTheyShareOnce) {
  const std::vector<GenerateRequest> requests = Relatives();
  const GenerateReport plain = Run(requests, {.share_prefixes = false});
  EXPECT_EQ(plain.usage.cached_tokens, 0u);
  const GenerateReport shared = Run(requests, {});
  EXPECT_TRUE(BitsOf(shared) == BitsOf(plain));
  // Three wait for a step, and then start inside the first one's third block.
  EXPECT_EQ(shared.usage.cached_tokens, 3u * 35u);
  EXPECT_EQ(shared.work.positions, plain.work.positions - 3 * 35);
  EXPECT_GE(shared.peak_saved_bytes, 3 * 2 * kBlockBytes);
  EXPECT_GE(shared.peak_shared_bytes, 2 * kBlockBytes);
  const GenerateReport in_turn = Run(requests, {.max_batch = 1});
  EXPECT_TRUE(BitsOf(in_turn) == BitsOf(plain));
  EXPECT_EQ(in_turn.usage.cached_tokens, 3u * 35u);
}

TEST_F(SharingTest, ALaterRunFindsAnEarlierOne) {
  const auto generator = Make({});
  const std::vector<GenerateRequest> requests = Relatives();
  const GenerateReport first = Run(*generator, requests);
  EXPECT_GT(first.idle_bytes, 0u);
  const GenerateReport again = Run(*generator, requests);
  EXPECT_TRUE(BitsOf(again) == BitsOf(first));
  // The complete blocks of each prompt.
  EXPECT_EQ(again.usage.cached_tokens, 4u * 48u + 16u);
  // A prompt wholly cached is computed from its last token on, whose logits are wanted.
  const std::vector<GenerateRequest> whole = {{.prompt = Prompt(48, 35, 2), .max_tokens = 3}};
  const GenerateReport last_only = Run(*generator, whole);
  EXPECT_EQ(last_only.usage.cached_tokens, 47u);
  EXPECT_TRUE(BitsOf(last_only) == BitsOf(Run(whole, {.use_cache = false})));
  const std::vector<GenerateRequest> longer = {
      {.prompt = Prompt(70, 35, 2), .max_tokens = 5, .seed = 3}};
  EXPECT_TRUE(BitsOf(Run(*generator, longer)) == BitsOf(Run(longer, {.use_cache = false})));
}

TEST_F(SharingTest, WithoutCacheNothingIsFound) {
  const auto generator = Make({.use_cache = false});
  const std::vector<GenerateRequest> requests = Relatives();
  const GenerateReport first = Run(*generator, requests);
  const GenerateReport again = Run(*generator, requests);
  EXPECT_EQ(again.usage.cached_tokens, 0u);
  EXPECT_EQ(again.work.positions, first.work.positions);
  EXPECT_EQ(again.idle_bytes, 0u);
}

TEST_F(SharingTest, ChoicesShareTheirPromptsBlocks) {
  const std::vector<GenerateRequest> requests = {
      {.prompt = Prompt(40), .max_tokens = 20, .seed = 1, .choices = 8}};
  const auto generator = Make({});
  std::vector<StepTrace> steps;
  Observer observer;
  observer.on_step = [&](const StepTrace& step) { steps.push_back(step); };
  const GenerateReport report = Run(*generator, requests, observer);
  EXPECT_EQ(report.work.positions, 40u + 8u * 19u);
  // Two whole blocks of the prompt, held by eight.
  EXPECT_GE(report.peak_saved_bytes, 7u * 2u * kBlockBytes);
  EXPECT_GE(report.peak_shared_bytes, 2 * kBlockBytes);
  const StepTrace& middle = steps[steps.size() / 2];
  EXPECT_GE(middle.shared_bytes, 2 * kBlockBytes);
  EXPECT_LT(middle.shared_bytes, middle.held_bytes);
  EXPECT_GT(middle.waste_bytes, 0u);
  EXPECT_LT(middle.waste_bytes, middle.held_bytes);
  EXPECT_EQ(steps.front().idle_bytes, 0u);
}

// From just enough for the longest text up to enough for all.
TEST_F(SharingTest, AnyBudgetGivesTheSameBits) {
  std::vector<GenerateRequest> requests = Relatives();
  for (std::size_t salt = 5; salt < 10; ++salt) {
    requests.push_back({.prompt = Prompt(33, 10, salt), .max_tokens = 40, .seed = salt});
  }
  const GenerateReport plain = Run(requests, {.use_cache = false, .max_batch = 1});
  std::uint64_t preemptions = 0;
  for (const std::uint64_t blocks : {5u, 6u, 7u, 9u, 13u, 20u, 100u}) {
    for (GeneratorOptions options :
         {GeneratorOptions{}, GeneratorOptions{.prefill_chunk = 7, .max_batch = 4},
          GeneratorOptions{.step_tokens = 20, .placement_seed = blocks},
          GeneratorOptions{.share_prefixes = false},
          GeneratorOptions{.use_cache = false, .prefill_chunk = 9}}) {
      options.kv_budget_bytes = blocks * kBlockBytes;
      const GenerateReport report = Run(requests, options);
      EXPECT_TRUE(BitsOf(report) == BitsOf(plain)) << blocks;
      EXPECT_LE(report.peak_bytes, blocks * kBlockBytes);
      preemptions += report.preemptions;
      if (blocks == 100) {
        EXPECT_EQ(report.preemptions, 0u);
      }
    }
  }
  EXPECT_GT(preemptions, 20u);
}

TEST_F(SharingTest, ATextThatCannotFitIsRefusedBeforeAnythingIsComputed) {
  const std::vector<GenerateRequest> requests = {
      {.prompt = Prompt(20), .max_tokens = 5},
      {.prompt = Prompt(30), .max_tokens = 52}};  // 81 positions, 82 tokens: 6 blocks.
  const auto refused = Make({.kv_budget_bytes = 5 * kBlockBytes + 1})->Run(requests);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
  EXPECT_THAT(refused.error().message,
              HasSubstr("prompt 2: the cache budget of 30721 bytes holds 80 positions"));
  EXPECT_THAT(refused.error().message, HasSubstr("81, which take 36864 bytes"));
  EXPECT_TRUE(Make({.kv_budget_bytes = 6 * kBlockBytes})->Run(requests));
  // Blocks that the text fills whole are enough.
  const GenerateRequest full = {.prompt = Prompt(30), .max_tokens = 51};
  EXPECT_TRUE(Make({.kv_budget_bytes = 5 * kBlockBytes})->Run(std::span(&full, 1)));
}

TEST_F(SharingTest, ABudgetBelowOneBlockIsRefused) {
  const auto refused =
      Generator::Make(*model_, vocabulary_, team_, {.kv_budget_bytes = kBlockBytes - 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("6143 bytes"));
}

TEST_F(SharingTest, ARunThatEndsEarlyHoldsNothing) {
  const auto generator = Make({});
  Observer observer;
  int tokens = 0;
  observer.on_token = [&](const TokenEvent&) -> base::Result<void> {
    if (++tokens < 9) return base::Success();
    return base::MakeError(base::ErrorCode::kCancelled, "enough");
  };
  const std::vector<GenerateRequest> requests = Relatives();
  ASSERT_FALSE(generator->Run(requests, observer));
  std::vector<StepTrace> steps;
  Observer watch;
  watch.on_step = [&](const StepTrace& step) { steps.push_back(step); };
  const GenerateReport again = Run(*generator, requests, watch);
  EXPECT_EQ(steps.back().tables.size(), steps.back().sequences);
  EXPECT_TRUE(BitsOf(again) == BitsOf(Run(requests, {})));
  EXPECT_GT(again.usage.cached_tokens, 3u * 32u);  // What the cancelled run left is found.
}

TEST(SequenceManagerOfAModelTest, BudgetsAndNames) {
  const auto model = TinyGpt2(kVocab, kContext);
  const auto plain = MakeSequenceManager(model->shape(), {.max_batch = 2});
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain.value()->pool_stats().capacity_blocks, 4u * 7u);
  EXPECT_EQ(plain.value()->geometry().block_bytes(), kBlockBytes);
  const auto other =
      MakeSequenceManager(model->shape(), {.kv_budget_bytes = 3 * kBlockBytes, .weights = {1, 2}});
  ASSERT_TRUE(other);
  EXPECT_EQ(other.value()->pool_stats().capacity_blocks, 3u);
  const std::vector<TokenId> text(16, 3);
  EXPECT_NE(plain.value()->NextBlockName(plain.value()->Create(), text),
            other.value()->NextBlockName(other.value()->Create(), text));
  const auto off = MakeSequenceManager(model->shape(), {.use_cache = false});
  EXPECT_FALSE(off.value()->NextBlockName(off.value()->Create(), text));
}

TEST(SequenceLeaseTest, EndsItsSequenceOnce) {
  const auto model = TinyGpt2(kVocab, kContext);
  const auto manager = MakeSequenceManager(model->shape(), {}).value();
  {
    SequenceLease lease(*manager, manager->Create());
    const SequenceLease moved(std::move(lease));
    EXPECT_EQ(manager->report().running, 1u);
    EXPECT_EQ(manager->report(moved.id()).length, 0u);
  }
  EXPECT_EQ(manager->report().running, 0u);
}

}  // namespace
}  // namespace kvasir::engine
