#include "engine/last_logits.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "engine/engine_test_models.h"
#include "engine/generator.h"

namespace kvasir::engine {
namespace {

TEST(LastLogitsTest, BitsOfTheGenerator) {
  const tokenizer::Vocabulary vocabulary = VocabularyOf("abcdefgh");
  const auto model = TinyGpt2(vocabulary.size(), 40);
  base::ThreadTeam team(1);
  const GenerateRequest request = {.prompt = {259, 260, 261, 262, 263, 264, 265, 259, 260, 264, 261,
                                              260, 259, 261, 262, 259, 263},
                                   .max_tokens = 1};
  std::vector<float> row;
  Observer observer;
  observer.on_logits = [&](const LogitsEvent& e) { row.assign(e.row.begin(), e.row.end()); };
  const auto generator = Generator::Make(*model, vocabulary, team, {});
  ASSERT_TRUE(generator);
  ASSERT_TRUE(generator.value()->Run({&request, 1}, observer));
  for (const GeneratorOptions& options : {GeneratorOptions{}, GeneratorOptions{.prefill_chunk = 1},
                                          GeneratorOptions{.block_tokens = 32, .prefill_chunk = 5},
                                          GeneratorOptions{.step_tokens = 4}}) {
    const auto logits = LastLogits(*model, request.prompt, options, team);
    ASSERT_TRUE(logits);
    ASSERT_EQ(logits.value().size(), row.size());
    EXPECT_EQ(std::memcmp(logits.value().data(), row.data(), row.size() * sizeof(float)), 0);
  }
}

TEST(LastLogitsTest, LengthsThatDoNotFit) {
  const auto model = TinyGpt2(300, 16);
  base::ThreadTeam team(1);
  EXPECT_TRUE(LastLogits(*model, std::vector<TokenId>(16, 1), {}, team));
  for (const std::size_t tokens : {std::size_t{0}, std::size_t{17}}) {
    const auto logits = LastLogits(*model, std::vector<TokenId>(tokens, 1), {}, team);
    ASSERT_FALSE(logits);
    EXPECT_EQ(logits.error().code, base::ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace kvasir::engine
