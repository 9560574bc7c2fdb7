#include "cli/longest_run.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"

namespace kvasir::cli {
namespace {

using CodePoint = std::uint32_t;

constexpr CodePoint kNewline = '\n';

// The first character of a non-empty text, which is then shortened by it.
CodePoint TakeCharacter(std::string_view& text) {
  const base::Utf8Step step = base::DecodeUtf8(text);
  KV_CHECK(step.status == base::Utf8Status::kOk);
  text.remove_prefix(step.bytes);
  return step.code_point;
}

// A suffix automaton (Blumer et al. 1985): its states are the classes of substrings of a text that
// end at the same places, so a walk along another text knows the longest suffix that is a
// substring.
class SuffixAutomaton {
 public:
  explicit SuffixAutomaton(std::string_view text) {
    states_.push_back({});
    while (!text.empty()) Extend(TakeCharacter(text));
  }

  // One more character of the other text: moves state and length of the longest suffix known.
  void Step(CodePoint c, std::size_t& state, std::size_t& length) const {
    while (true) {
      const auto next = states_[state].next.find(c);
      if (next != states_[state].next.end()) {
        state = next->second;
        ++length;
        return;
      }
      if (state == 0) break;
      state = states_[state].link;
      length = states_[state].length;
    }
    length = 0;
  }

 private:
  struct State {
    std::size_t length = 0;  // of the longest substring of the class
    std::size_t link = kNone;
    std::unordered_map<CodePoint, std::size_t> next;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void Extend(CodePoint c) {
    const std::size_t current = states_.size();
    states_.push_back({states_[last_].length + 1, 0, {}});
    std::size_t p = last_;
    for (; p != kNone && !states_[p].next.contains(c); p = states_[p].link) {
      states_[p].next[c] = current;
    }
    if (p != kNone) states_[current].link = LinkTarget(p, c);
    last_ = current;
  }

  // The state of the longest substring that ends in c after p, split off if it stands for longer
  // ones too.
  std::size_t LinkTarget(std::size_t p, CodePoint c) {
    const std::size_t q = states_[p].next[c];
    if (states_[q].length == states_[p].length + 1) return q;
    const std::size_t clone = states_.size();
    State copy = states_[q];
    copy.length = states_[p].length + 1;
    states_.push_back(std::move(copy));
    states_[q].link = clone;
    for (; p != kNone; p = states_[p].link) {
      const auto next = states_[p].next.find(c);
      if (next == states_[p].next.end() || next->second != q) break;
      next->second = clone;
    }
    return clone;
  }

  std::vector<State> states_;
  std::size_t last_ = 0;
};

// The last `count` characters of text, which has as many.
std::string_view LastCharacters(std::string_view text, std::size_t count) {
  std::size_t begin = text.size();
  for (; count > 0; --count) {
    do {
      --begin;
    } while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80);
  }
  return text.substr(begin);
}

}  // namespace

LongestRun FindLongestRun(std::string_view corpus, std::string_view sample) {
  const SuffixAutomaton automaton(sample);
  std::size_t state = 0;
  std::size_t length = 0;
  std::size_t best = 0;
  std::size_t best_end = 0;
  for (std::string_view rest = corpus; !rest.empty();) {
    const CodePoint c = TakeCharacter(rest);
    if (c == kNewline) {
      state = length = 0;
      continue;
    }
    automaton.Step(c, state, length);
    if (length > best) {
      best = length;
      best_end = corpus.size() - rest.size();
    }
  }
  return {best, std::string(LastCharacters(corpus.substr(0, best_end), best))};
}

}  // namespace kvasir::cli
