#include "constraints/recognizer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace kvasir::constraints {

Recognizer::Recognizer(Grammar grammar, std::size_t max_bytes)
    : grammar_(std::move(grammar)), max_bytes_(max_bytes) {
  states_.emplace_back();
  states_[kDeadState].next.fill(kDeadState);
  const StackId bottom = InternStack({{kEmptyTerm, kNoStack}});
  OpenTerm(grammar_.start, bottom);
  CloseAll();
  start_ = InternState();
}

base::Result<void> Recognizer::Status() const {
  if (!exhausted_) return base::Success();
  return base::WithHint(
      base::MakeError(base::ErrorCode::kUsage,
                      "constraint: the ways to read this text need more than {} MiB, the limit",
                      max_bytes_ >> 20),
      "rules that read one text in many ways, and counts inside each other, need much");
}

void Recognizer::OpenTerm(TermId term, StackId stack) {
  if (seen_.insert({term, stack}).second) open_.push_back({term, stack});
}

void Recognizer::AddCall(const Call& call) {
  calls_.push_back(call);
  std::push_heap(calls_.begin(), calls_.end(), std::greater<>());
}

void Recognizer::TakeApartOpen() {
  TermPool& pool = *grammar_.pool;
  while (!open_.empty()) {
    const auto [term, stack] = open_.back();
    open_.pop_back();
    pool.TakeApart(
        term,
        [&] {
          for (std::size_t i = 0; i < stacks_[stack].size(); ++i) {
            const Waiting waiting = stacks_[stack][i];
            if (waiting.below == kNoStack) {
              may_end_ = true;
            } else {
              OpenTerm(waiting.rest, waiting.below);
            }
          }
        },
        [&](std::uint32_t set, TermId rest) {
          positions_.push_back({pool.first_byte(set), stack, rest});
        },
        [&](RuleId rule, TermId rest) {
          const std::uint32_t rank = grammar_.ranks[rule];
          if (rest == kEmptyTerm) {
            // Nothing waits here: what waits below waits for the rule. So a rule that ends in a
            // call of itself needs no stack.
            for (const Waiting& waiting : stacks_[stack]) AddCall({rank, rule, waiting});
          } else {
            AddCall({rank, rule, {rest, stack}});
          }
        },
        [&](TermId other) { OpenTerm(other, stack); });
  }
}

void Recognizer::CloseAll() {
  TakeApartOpen();
  // A rule can only begin with rules of higher rank, so that with the lowest rank first all calls
  // of a rule are known when it is opened. No rule is empty, so none ends here.
  while (!calls_.empty()) {
    const RuleId rule = calls_.front().rule;
    std::vector<Waiting> waiting;
    while (!calls_.empty() && calls_.front().rule == rule) {
      waiting.push_back(calls_.front().waiting);
      std::pop_heap(calls_.begin(), calls_.end(), std::greater<>());
      calls_.pop_back();
    }
    OpenTerm(grammar_.rules[rule], InternStack(std::move(waiting)));
    TakeApartOpen();
  }
  if (seen_.bucket_count() > 4096) {
    seen_ = {};
  } else {
    seen_.clear();
  }
}

template <typename T, typename Covers>
void Recognizer::DropCovered(std::vector<T>& all, Covers covers) {
  constexpr std::size_t kMostCompared = 64;  // With each: the nearest of those that are kept.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const T one = all[i];
    const std::size_t first = kept - std::min(kept, kMostCompared);
    bool covered = false;
    for (std::size_t k = kept; !covered && k-- > first;) covered = covers(all[k], one);
    if (covered) continue;
    const auto end = std::remove_if(all.begin() + static_cast<std::ptrdiff_t>(first),
                                    all.begin() + static_cast<std::ptrdiff_t>(kept),
                                    [&](const T& other) { return covers(one, other); });
    kept = static_cast<std::size_t>(end - all.begin());
    all[kept++] = one;
  }
  all.resize(kept);
}

bool Recognizer::Within(StackId less, StackId more) {
  if (less == more) return true;
  if (less == kNoStack || more == kNoStack) return false;
  const std::uint64_t key = std::uint64_t{less} << 32 | more;
  const auto known = within_.find(key);
  if (known != within_.end()) return known->second;
  constexpr std::size_t kMostPairs = 256;  // Larger ones are not compared.
  const auto &a = stacks_[less], &b = stacks_[more];
  // What is below is asked of what is known only, so that this does not descend.
  const auto below = [&](StackId x, StackId y) {
    if (x == y) return true;
    if (x == kNoStack || y == kNoStack) return false;
    const auto found = within_.find(std::uint64_t{x} << 32 | y);
    return found != within_.end() && found->second;
  };
  const bool within =
      a.size() * b.size() <= kMostPairs && std::all_of(a.begin(), a.end(), [&](const Waiting& x) {
        return std::any_of(b.begin(), b.end(), [&](const Waiting& y) {
          return below(x.below, y.below) && grammar_.pool->Covers(y.rest, x.rest);
        });
      });
  within_.emplace(key, within);
  kept_bytes_ += 2 * sizeof(key);
  return within;
}

Recognizer::StackId Recognizer::InternStack(std::vector<Waiting> waiting) {
  std::sort(waiting.begin(), waiting.end());
  waiting.erase(std::unique(waiting.begin(), waiting.end()), waiting.end());
  DropCovered(waiting, [&](const Waiting& more, const Waiting& less) {
    return grammar_.pool->Covers(more.rest, less.rest) && Within(less.below, more.below);
  });
  waiting.shrink_to_fit();
  const std::uint64_t hash = base::HashSpan64(std::span<const Waiting>(waiting));
  std::vector<StackId>& same = stack_ids_[hash];
  for (const StackId id : same) {
    if (stacks_[id] == waiting) return id;
  }
  same.push_back(static_cast<StackId>(stacks_.size()));
  kept_bytes_ += sizeof(std::vector<Waiting>) + waiting.size() * sizeof(Waiting);
  stacks_.push_back(std::move(waiting));
  return same.back();
}

StateId Recognizer::InternState() {
  std::sort(positions_.begin(), positions_.end());
  positions_.erase(std::unique(positions_.begin(), positions_.end()), positions_.end());
  DropCovered(positions_, [&](const Position& more, const Position& less) {
    return more.node == less.node && grammar_.pool->Covers(more.rest, less.rest) &&
           Within(less.stack, more.stack);
  });
  const bool may_end = std::exchange(may_end_, false);
  if (positions_.empty() && !may_end) return kDeadState;
  const std::uint64_t hash =
      base::HashSpan64(std::span<const Position>(positions_), may_end ? 1 : 0);
  std::vector<StateId>& same = state_ids_[hash];
  for (const StateId id : same) {
    if (states_[id].may_end == may_end && states_[id].positions == positions_) {
      positions_.clear();
      return id;
    }
  }
  same.push_back(static_cast<StateId>(states_.size()));
  kept_bytes_ += sizeof(State) + positions_.size() * sizeof(Position);
  State& state = states_.emplace_back();
  state.positions = std::exchange(positions_, {});
  state.may_end = may_end;
  // What no position allows is dead without being computed.
  state.next.fill(kDeadState);
  for (const Position& position : state.positions) {
    for (const ByteEdge& edge : grammar_.pool->utf8().edges(position.node)) {
      std::fill(state.next.begin() + edge.first, state.next.begin() + edge.last + 1, kUnknown);
    }
  }
  return same.back();
}

StateId Recognizer::Compute(StateId state, std::uint8_t byte) {
  constexpr std::size_t kTermBytes = 3 * sizeof(Term);  // With its place in the index.
  exhausted_ = exhausted_ || kept_bytes_ + grammar_.pool->size() * kTermBytes > max_bytes_;
  if (exhausted_) return kDeadState;
  for (const Position& position : states_[state].positions) {
    for (const ByteEdge& edge : grammar_.pool->utf8().edges(position.node)) {
      if (byte < edge.first || byte > edge.last) continue;
      if (edge.next == kWholeCharacter) {
        OpenTerm(position.rest, position.stack);
      } else {
        positions_.push_back({edge.next, position.stack, position.rest});
      }
    }
  }
  CloseAll();
  const StateId next = InternState();
  states_[state].next[byte] = next;
  return next;
}

}  // namespace kvasir::constraints
