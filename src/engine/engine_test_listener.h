// For tests: a listener that keeps everything it is told, as bits.
#ifndef KVASIR_ENGINE_ENGINE_TEST_LISTENER_H_
#define KVASIR_ENGINE_ENGINE_TEST_LISTENER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/clock.h"
#include "engine/listener.h"

namespace kvasir::engine {

// Time stands still until a test moves it.
class FakeClock : public Clock {
 public:
  std::uint64_t Now() const override { return now_us; }
  std::uint64_t now_us = 1;
};

// A token with everything reported of it.
struct TokenBits {
  TokenId id;
  std::uint64_t logprob;
  std::size_t candidates;
  std::vector<std::pair<TokenId, std::uint64_t>> top;

  static TokenBits Of(const GeneratedToken& token) {
    TokenBits bits{token.id, std::bit_cast<std::uint64_t>(token.logprob), token.candidates, {}};
    for (const sampling::TokenLogProb& other : token.top) {
      bits.top.emplace_back(other.id, std::bit_cast<std::uint64_t>(other.logprob));
    }
    return bits;
  }
  friend bool operator==(const TokenBits&, const TokenBits&) = default;
};

struct ChoiceBits {
  std::string text;
  std::vector<TokenBits> tokens;
  std::optional<FinishReason> finish = {};
  std::string rest = {};
  friend bool operator==(const ChoiceBits&, const ChoiceBits&) = default;

  // Whether this may have become that, had it not been ended early.
  bool IsBeginningOf(const ChoiceBits& whole) const {
    return whole.text.starts_with(text) && tokens.size() <= whole.tokens.size() &&
           std::equal(tokens.begin(), tokens.end(), whole.tokens.begin());
  }
};

// Expects calls in the order that listener.h promises.
class RecordingListener : public Listener {
 public:
  void OnToken(const TokenStep& step) override {
    EXPECT_FALSE(done);
    ChoiceBits& choice = choices[step.choice];
    EXPECT_FALSE(choice.finish) << "a token after the choice's end";
    choice.text += step.text;
    choice.tokens.push_back(TokenBits::Of(step.token));
    if (on_token) on_token(step);
  }
  void OnPromptScored(std::span<const GeneratedToken> tokens) override {
    EXPECT_FALSE(done);
    EXPECT_FALSE(prompt) << "scored twice";
    prompt.emplace();
    for (const GeneratedToken& token : tokens) prompt->push_back(TokenBits::Of(token));
  }
  void OnFinish(std::uint32_t index, FinishReason reason, std::string_view rest) override {
    EXPECT_FALSE(done);
    ChoiceBits& choice = choices[index];
    EXPECT_FALSE(choice.finish) << "finished twice";
    choice.finish = reason;
    choice.rest = rest;
  }
  void OnDone(const base::Result<Usage>& outcome) override {
    EXPECT_FALSE(done) << "done twice";
    done = true;
    if (outcome) {
      usage = outcome.value();
      std::uint64_t tokens = 0;
      for (const auto& [index, choice] : choices) {
        EXPECT_TRUE(choice.finish);
        tokens += choice.tokens.size();
      }
      EXPECT_EQ(tokens, usage.completion_tokens);
      EXPECT_TRUE(usage.cached_tokens == 0 || usage.cached_tokens < usage.prompt_tokens);
    } else {
      error = outcome.error();
    }
    if (on_done) on_done();
  }

  std::map<std::uint32_t, ChoiceBits> choices;
  std::optional<std::vector<TokenBits>> prompt;
  bool done = false;
  Usage usage;
  std::optional<base::Error> error;
  std::function<void(const TokenStep&)> on_token;
  std::function<void()> on_done;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_ENGINE_TEST_LISTENER_H_
