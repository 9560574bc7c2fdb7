#include "constraints/recognizer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace kvasir::constraints {

Recognizer::Recognizer(Grammar grammar, std::size_t max_bytes)
    : grammar_(std::move(grammar)), max_bytes_(max_bytes) {
  states_.push_back(std::make_unique<State>());
  states_[kDeadState]->last = 255;
  states_[kDeadState]->first = 0;
  const StackId bottom = InternStack({{kEmptyTerm, kNoStack}});
  OpenTerm(grammar_.start, bottom);
  CloseAll();
  start_ = InternState();
  outside_ = InternStack({{kEmptyTerm, kUnknownStack}});
}

base::Result<void> Recognizer::Status() const {
  if (!exhausted_) return base::Success();
  return base::WithHint(
      base::MakeError(base::ErrorCode::kUsage,
                      "constraint: the ways to read this text need more than {} MiB, the limit",
                      max_bytes_ >> 20),
      "rules that read one text in many ways, and counts inside each other, need much; "
      "--constraint-memory sets the limit");
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
            } else if (waiting.below == kUnknownStack) {
              may_leave_ = true;
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
        [&](TermId entered, TermId rest) {
          OpenTerm(entered, InternStack({{rest, stack}}));
        },
        [&](std::uint32_t result) {
          for (std::size_t i = 0; i < stacks_[stack].size(); ++i) {
            const Waiting waiting = stacks_[stack][i];
            if (waiting.below == kUnknownStack) {
              may_leave_ = true;
            } else {
              OpenTerm(pool.Selected(waiting.rest, result), waiting.below);
            }
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
  if (less >= kUnknownStack || more >= kUnknownStack) return false;
  const std::uint64_t key = std::uint64_t{less} << 32 | more;
  const auto known = within_.find(key);
  if (known != within_.end()) return known->second;
  constexpr std::size_t kMostPairs = 256;  // Larger ones are not compared.
  const auto &a = stacks_[less], &b = stacks_[more];
  // What is below is asked of what is known only, so that this does not descend.
  const auto below = [&](StackId x, StackId y) {
    if (x == y) return true;
    if (x >= kUnknownStack || y >= kUnknownStack) return false;
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

// A state without its positions, with its places in the lists and what memory management adds.
constexpr std::size_t kStateBytes = 224;

StateId Recognizer::InternState() {
  std::sort(positions_.begin(), positions_.end());
  positions_.erase(std::unique(positions_.begin(), positions_.end()), positions_.end());
  DropCovered(positions_, [&](const Position& more, const Position& less) {
    return more.node == less.node && grammar_.pool->Covers(more.rest, less.rest) &&
           Within(less.stack, more.stack);
  });
  const bool may_end = std::exchange(may_end_, false);
  const bool may_leave = std::exchange(may_leave_, false);
  if (positions_.empty() && !may_end && !may_leave) return kDeadState;
  const std::uint64_t hash = base::HashSpan64(std::span<const Position>(positions_),
                                              (may_end ? 1u : 0u) + (may_leave ? 2u : 0u));
  std::vector<StateId>& same = state_ids_[hash];
  for (const StateId id : same) {
    const State& known = *states_[id];
    if (known.may_end == may_end && known.may_leave == may_leave && known.positions == positions_) {
      positions_.clear();
      return id;
    }
  }
  same.push_back(static_cast<StateId>(states_.size()));
  kept_bytes_ += kStateBytes + positions_.size() * sizeof(Position);
  State& state = *states_.emplace_back(std::make_unique<State>());
  state.positions = std::exchange(positions_, {});
  state.may_end = may_end;
  state.may_leave = may_leave;
  // What no position allows is dead without being computed.
  for (const Position& position : state.positions) {
    for (const ByteEdge& edge : grammar_.pool->utf8().edges(position.node)) {
      for (unsigned byte = edge.first; byte <= edge.last; ++byte) {
        state.allowed[byte / 64] |= std::uint64_t{1} << (byte % 64);
      }
    }
  }
  return same.back();
}

StateId Recognizer::Compute(StateId state, std::uint8_t byte) {
  constexpr std::size_t kTermBytes = 3 * sizeof(Term);  // With its place in the index.
  exhausted_ = exhausted_ || kept_bytes_ + grammar_.pool->size() * kTermBytes > max_bytes_;
  if (exhausted_) return kDeadState;
  State& from = *states_[state];
  // Bytes that lead through the same edges lead to the same state: found at once for all between
  // first and last.
  std::uint8_t first = 0, last = 255;
  for (const Position& position : from.positions) {
    for (const ByteEdge& edge : grammar_.pool->utf8().edges(position.node)) {
      if (edge.last < byte) {
        first = std::max<std::uint8_t>(first, edge.last + 1);
        continue;
      }
      if (edge.first > byte) {
        last = std::min<std::uint8_t>(last, edge.first - 1);
        break;
      }
      first = std::max(first, edge.first);
      last = std::min(last, edge.last);
      if (edge.next == kWholeCharacter) {
        OpenTerm(position.rest, position.stack);
      } else {
        positions_.push_back({edge.next, position.stack, position.rest});
      }
    }
  }
  CloseAll();
  const StateId next = InternState();
  if (from.row == nullptr && from.first > from.last) {
    from.first = first;
    from.last = last;
    from.next = next;
    return next;
  }
  if (from.row == nullptr) MakeRow(from);
  std::fill(from.row->begin() + first, from.row->begin() + last + 1, next);
  return next;
}

void Recognizer::MakeRow(State& from) {
  from.row = std::make_unique<Row>();
  kept_bytes_ += sizeof(Row);
  for (std::size_t byte = 0; byte < from.row->size(); ++byte) {
    (*from.row)[byte] = from.Allows(static_cast<std::uint8_t>(byte)) ? kUnknown : kDeadState;
  }
  if (from.first <= from.last) {
    std::fill(from.row->begin() + from.first, from.row->begin() + from.last + 1, from.next);
  }
}

std::vector<StateId> Recognizer::Parts(StateId state) {
  std::vector<Position> positions = states_[state]->positions;
  std::stable_sort(positions.begin(), positions.end(),
                   [](const Position& a, const Position& b) { return a.stack < b.stack; });
  std::vector<StateId> parts;
  for (std::size_t i = 0; i < positions.size();) {
    const StackId stack = positions[i].stack;
    for (; i < positions.size() && positions[i].stack == stack; ++i) {
      positions_.push_back({positions[i].node, outside_, positions[i].rest});
    }
    parts.push_back(InternState());
  }
  return parts;
}

}  // namespace kvasir::constraints
