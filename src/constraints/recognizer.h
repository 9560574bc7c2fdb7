// Recognizer: reads a text byte by byte and knows at each place which bytes may follow.
//
// A text under a grammar is in a set of positions: a place inside a character, the term that has to
// follow it, and the calls that wait below. The sets are made when a text first gets there and
// kept, as a deterministic automaton that is built as far as it is needed; the waiting calls are a
// stack whose equal parts are shared ("graph-structured stack", Tomita 1985). Because equal stacks
// are equal numbers, two texts with the same future mostly are in the same state.
#ifndef KVASIR_CONSTRAINTS_RECOGNIZER_H_
#define KVASIR_CONSTRAINTS_RECOGNIZER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include "base/result.h"
#include "constraints/grammar.h"

namespace kvasir::constraints {

using StateId = std::uint32_t;
inline constexpr StateId kDeadState = 0;

// What a recognizer may grow to, in bytes, about, unless said otherwise. Ambiguous rules and nested
// counts can need memory in proportion to the square of a text's length.
inline constexpr std::size_t kDefaultRecognizerBytes = std::size_t{64} << 20;

// Single-threaded: reading a text adds states. Invariants, while Status() is no error:
//   1. the text read so far is the beginning of a text of the grammar exactly if its state is not
//      kDeadState;
//   2. MayEnd(s) exactly if the text is one of the grammar;
//   3. equal sets of positions have equal ids;
//   4. no position or waiting call is covered by another, as far as it is looked for
//      (TermPool::Covers, Within): of a{0,9} and a{0,4} in the same place only the first is kept,
//      so that counts inside each other do not multiply.
class Recognizer {
 public:
  explicit Recognizer(Grammar grammar, std::size_t max_bytes = kDefaultRecognizerBytes);

  StateId start() const { return start_; }
  // The state after one more byte; kDeadState if it may not follow.
  StateId Step(StateId state, std::uint8_t byte) {
    const State& from = *states_[state];
    if (from.row == nullptr) {
      if (byte >= from.first && byte <= from.last) return from.next;
      return from.Allows(byte) ? Compute(state, byte) : kDeadState;
    }
    const StateId known = (*from.row)[byte];
    return known != kUnknown ? known : Compute(state, byte);
  }
  StateId Step(StateId state, std::string_view bytes) {
    for (const char byte : bytes) {
      state = Step(state, static_cast<std::uint8_t>(byte));
      if (state == kDeadState) break;
    }
    return state;
  }
  bool MayEnd(StateId state) const { return states_[state]->may_end; }
  // Some byte may follow.
  bool MayContinue(StateId state) const { return !states_[state]->positions.empty(); }
  // A state is a union of groups of positions, each with its own calls that wait. Here is each
  // group as a state of its own whose waiting calls are not known ("outside"): the same for all
  // states that differ only in these. What may follow one of these may follow `state`; and where
  // one of them MayLeave, what follows depends on the calls too.
  std::vector<StateId> Parts(StateId state);
  // Of a part's, or what follows it: a text may end here as far as the part goes, so that what
  // waits outside comes next.
  bool MayLeave(StateId state) const { return states_[state]->may_leave; }
  std::size_t state_count() const { return states_.size(); }
  // An error (kUsage) once the limit was met. Then no more is computed: bytes not read before from
  // a state are refused there, and what this recognizer says of texts is not to be used.
  base::Result<void> Status() const;

 private:
  using StackId = std::uint32_t;
  static constexpr StateId kUnknown = ~StateId{0};
  static constexpr StackId kNoStack = ~StackId{0};
  static constexpr StackId kUnknownStack = kNoStack - 1;  // What waits is not known.

  struct Position {
    ByteNode node = kWholeCharacter;  // Where in a character.
    StackId stack = 0;                // One of what waits here follows in the end,
    TermId rest = kEmptyTerm;         // and this before it, after the character.
    friend auto operator<=>(const Position&, const Position&) = default;
  };
  // What waits for a rule to be read: `rest`, then what waits in `below`; kNoStack: the end.
  // `rest` may be a Select, which only the result of what was entered makes a term.
  struct Waiting {
    TermId rest = kEmptyTerm;
    StackId below = kNoStack;
    friend auto operator<=>(const Waiting&, const Waiting&) = default;
  };
  using Row = std::array<StateId, 256>;
  struct State {
    std::vector<Position> positions;  // ascending
    bool may_end = false;
    bool may_leave = false;
    std::array<std::uint64_t, 4> allowed = {};  // Bits of the bytes that may come.
    // What is known of the next states: one for the bytes from first to last, while that is all;
    // then a row by byte.
    std::uint8_t first = 1, last = 0;
    StateId next = kDeadState;
    std::unique_ptr<Row> row;

    bool Allows(std::uint8_t byte) const { return (allowed[byte / 64] >> (byte % 64) & 1) != 0; }
  };
  // A term that is to be read now.
  struct Open {
    TermId term;
    StackId stack;
    friend bool operator==(const Open&, const Open&) = default;
    friend std::size_t hash_value(const Open& open) {
      return boost::hash<std::uint64_t>()(std::uint64_t{open.term} << 32 | open.stack);
    }
  };
  struct Call {
    std::uint32_t rank;
    RuleId rule;
    Waiting waiting;
    friend auto operator<=>(const Call&, const Call&) = default;
  };

  StateId Compute(StateId state, std::uint8_t byte);
  void MakeRow(State& from);
  // Takes open_ apart into positions_ and calls_, then the rules called, callers first.
  void CloseAll();
  void TakeApartOpen();
  void AddCall(const Call& call);
  void OpenTerm(TermId term, StackId stack);
  StackId InternStack(std::vector<Waiting> waiting);
  StateId InternState();
  // Leaves out what another one of `all` makes superfluous.
  template <typename T, typename Covers>
  void DropCovered(std::vector<T>& all, Covers covers);
  // Whether all that may follow `less` may follow `more`, as far as it is seen at once.
  bool Within(StackId less, StackId more);

  Grammar grammar_;
  std::size_t max_bytes_;
  std::size_t kept_bytes_ = 0;                  // Of states and stacks.
  bool exhausted_ = false;                      // The limit was met.
  std::vector<std::unique_ptr<State>> states_;  // [states]
  std::vector<std::vector<Waiting>> stacks_;    // [stacks] ascending; ids of `below` are lower
  boost::unordered_flat_map<std::uint64_t, std::vector<StateId>> state_ids_;  // By hash.
  boost::unordered_flat_map<std::uint64_t, std::vector<StackId>> stack_ids_;  // Likewise.
  boost::unordered_flat_map<std::uint64_t, bool> within_;                     // By pairs of stacks.
  StateId start_ = kDeadState;
  StackId outside_ = 0;  // The stack of parts.
  // Of the state that is being made:
  std::vector<Open> open_;
  boost::unordered_flat_set<Open> seen_;
  std::vector<Call> calls_;  // A heap, the lowest rank first.
  std::vector<Position> positions_;
  bool may_end_ = false;
  bool may_leave_ = false;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_RECOGNIZER_H_
