#include "sampling/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/utf8.h"

namespace kvasir::sampling {
namespace {

struct Outcome {
  std::string text;
  std::string matched;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

StopMatcher Make(std::vector<std::string> stops) {
  return StopMatcher::Create(std::move(stops)).value();
}

Outcome Match(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher = Make(stops);
  std::string text;
  for (const std::string& piece : pieces) text += matcher.Feed(piece);
  if (!matcher.stopped()) text += matcher.Finish();
  return {text, matcher.matched()};
}

std::vector<std::string> Bytes(std::string_view text) {
  std::vector<std::string> bytes;
  for (char c : text) bytes.emplace_back(1, c);
  return bytes;
}

// Case C61: what is held back comes out when the stop does not.
TEST(StopMatcher, HeldTextIsReleased) {
  for (bool whole : {true, false}) {
    const auto run = [&](std::vector<std::string> stops, std::string text) {
      return Match(stops, whole ? std::vector<std::string>{text} : Bytes(text));
    };
    EXPECT_EQ(run({"<end>"}, "abc<"), (Outcome{"abc<", ""}));
    EXPECT_EQ(run({"assistant"}, "pleas"), (Outcome{"pleas", ""}));
    EXPECT_EQ(run({"ab"}, "aab"), (Outcome{"a", "ab"}));
    EXPECT_EQ(run({"aac"}, "aab"), (Outcome{"aab", ""}));
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatCouldBeginAStop) {
  StopMatcher matcher = Make({"<end>", "aab"});
  EXPECT_EQ(matcher.Feed("xyz"), "xyz");
  EXPECT_EQ(matcher.Feed("a<en"), "a");
  EXPECT_EQ(matcher.held_bytes(), 3u);
  EXPECT_EQ(matcher.Feed("x"), "<enx");
  EXPECT_EQ(matcher.Feed("aa"), "");
  EXPECT_EQ(matcher.Feed("a"), "a");
  EXPECT_EQ(matcher.Finish(), "aa");
  EXPECT_EQ(matcher.Finish(), "");
}

// Case C63: the match that completes first, independent of list order.
TEST(StopMatcher, EarliestCompletingMatchWins) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"C", "A"}, "x"},
      {{"BC", "B"}, "xA"},
      {{"ABC", "B"}, "xA"},
      // Both complete at C: the longer one, so that no part of a stop is shown.
      {{"BC", "C"}, "xA"}};
  for (auto [stops, expected] : cases) {
    for (int order = 0; order < 2; ++order) {
      EXPECT_EQ(Match(stops, {"xABCy"}).text, expected);
      EXPECT_EQ(Match(stops, Bytes("xABCy")).text, expected);
      std::reverse(stops.begin(), stops.end());
    }
  }
}

// Case C65: a stop inside a token; a stop over three tokens; the prompt is never fed.
TEST(StopMatcher, TokenBordersDoNotMatter) {
  EXPECT_EQ(Match({"b"}, {"abc"}).text, "a");
  EXPECT_EQ(Match({"ab。"}, {"xa", "b", "。y"}).text, "x");
}

// Case C67: not returned, and it is known which one hit.
TEST(StopMatcher, TellsWhichStopHit) {
  EXPECT_EQ(Match({"Y", "X"}, Bytes("aXbYc")), (Outcome{"a", "X"}));
  StopMatcher matcher = Make({"Y", "X"});
  EXPECT_EQ(matcher.Feed("aXb"), "a");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.Feed("Yc"), "");
  EXPECT_EQ(matcher.Finish(), "");
  EXPECT_EQ(matcher.matched(), "X");
}

TEST(StopMatcher, RefusesAnEmptyStop) {
  const auto result = StopMatcher::Create({"a", ""});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
  EXPECT_NE(result.error().message.find("stop string 2 is empty"), std::string::npos);
}

TEST(StopMatcher, NoStopsHoldNothing) {
  StopMatcher matcher = Make({});
  EXPECT_EQ(matcher.Feed("春风"), "春风");
  EXPECT_EQ(matcher.Finish(), "");
}

// The obvious oracle: the whole text, every end position in turn, the longest stop that ends there.
Outcome Oracle(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::string hit;
    for (const std::string& stop : stops) {
      if (stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0 &&
          stop.size() > hit.size()) {
        hit = stop;
      }
    }
    if (!hit.empty()) return {text.substr(0, end - hit.size()), hit};
  }
  return {text, ""};
}

// What has been released plus what is held is always the text so far, and the held part is the
// longest suffix that begins a stop.
TEST(StopMatcher, RandomTextsAgreeWithTheOracle) {
  constexpr unsigned kSeed = 7001;
  std::mt19937 random(kSeed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto word = [&](std::size_t most) {
    std::string s;
    for (std::size_t i = 0, n = 1 + pick(most); i < n; ++i) s += static_cast<char>('a' + pick(2));
    return s;
  };
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<std::string> stops;
    for (std::size_t i = 0, n = pick(4); i < n; ++i) stops.push_back(word(7));
    const std::string text = word(24);
    StopMatcher matcher = Make(stops);
    std::string released;
    std::size_t fed = 0;
    while (fed < text.size() && !matcher.stopped()) {
      const std::size_t n = std::min(text.size() - fed, 1 + pick(4));
      released += matcher.Feed(std::string_view(text).substr(fed, n));
      fed += n;
      if (matcher.stopped()) break;
      ASSERT_EQ(released.size() + matcher.held_bytes(), fed) << "seed " << kSeed << " " << trial;
      std::size_t longest = 0;
      for (const std::string& stop : stops) {
        for (std::size_t k = 1; k < stop.size() && k <= fed; ++k) {
          if (text.compare(fed - k, k, stop, 0, k) == 0) longest = std::max(longest, k);
        }
      }
      ASSERT_EQ(matcher.held_bytes(), longest) << "seed " << kSeed << " " << trial;
    }
    released += matcher.Finish();
    ASSERT_EQ((Outcome{released, matcher.matched()}), Oracle(stops, text))
        << "seed " << kSeed << " trial " << trial << " text " << text;
  }
}

// 春 is E6 98 A5, 昨 is E6 98 A8: a shared lead byte never splits a character.
TEST(StopMatcher, ReleasesWholeCharacters) {
  StopMatcher matcher = Make({"春风"});
  for (std::string_view piece : {"昨", "夜", "春", "昨", "春"}) {
    EXPECT_FALSE(base::FirstInvalidUtf8(matcher.Feed(piece)).has_value());
  }
  EXPECT_EQ(matcher.Feed("雨"), "春雨");
}

}  // namespace
}  // namespace kvasir::sampling
