#include "constraints/char_dfa.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

base::Error TooLarge() {
  return MakeError(ErrorCode::kUsage,
                   "an automaton over characters needs more than {} states, "
                   "the limit",
                   kMaxDfaStates);
}

// Appends an edge, joined with the last one where it goes on to the same state.
void AddEdge(CharDfa::Edge edge, std::vector<CharDfa::Edge>& edges) {
  if (!edges.empty() && edges.back().next == edge.next &&
      edges.back().range.last + 1 == edge.range.first) {
    edges.back().range.last = edge.range.last;
  } else {
    edges.push_back(edge);
  }
}

// Drops the states from which nothing with a label is reached.
CharDfa Trimmed(CharDfa dfa) {
  std::vector<std::vector<std::uint32_t>> sources(dfa.states.size());
  std::vector<std::uint32_t> open;
  for (std::uint32_t s = 0; s < dfa.states.size(); ++s) {
    for (const CharDfa::Edge& edge : dfa.states[s].edges) sources[edge.next].push_back(s);
    if (dfa.states[s].label != 0) open.push_back(s);
  }
  std::vector<bool> alive(dfa.states.size(), false);
  while (!open.empty()) {
    const std::uint32_t s = open.back();
    open.pop_back();
    if (alive[s]) continue;
    alive[s] = true;
    open.insert(open.end(), sources[s].begin(), sources[s].end());
  }
  if (dfa.states.empty() || !alive[0]) return {};
  std::vector<std::uint32_t> now(dfa.states.size(), 0);
  CharDfa trimmed;
  for (std::uint32_t s = 0; s < dfa.states.size(); ++s) {
    if (!alive[s]) continue;
    now[s] = static_cast<std::uint32_t>(trimmed.states.size());
    trimmed.states.push_back(std::move(dfa.states[s]));
  }
  for (CharDfa::State& state : trimmed.states) {
    std::erase_if(state.edges, [&](const CharDfa::Edge& edge) { return !alive[edge.next]; });
    for (CharDfa::Edge& edge : state.edges) edge.next = now[edge.next];
  }
  return trimmed;
}

// Numbers keys as they turn up; the keys not yet worked on are those from `done` on.
template <typename Key>
struct Numbering {
  std::map<Key, std::uint32_t> ids;
  std::vector<Key> keys;
  std::uint32_t Of(const Key& key) {
    const auto [place, added] = ids.emplace(key, static_cast<std::uint32_t>(keys.size()));
    if (added) keys.push_back(key);
    return place->second;
  }
};

// What a set of terms begins with.
struct Heads {
  bool ends = false;
  std::vector<std::pair<std::uint32_t, TermId>> chars;  // A set's index, and what follows.
};
Heads HeadsOf(TermPool& pool, const std::vector<TermId>& terms) {
  Heads heads;
  std::set<TermId> seen(terms.begin(), terms.end());
  std::vector<TermId> open(terms);
  while (!open.empty()) {
    const TermId term = open.back();
    open.pop_back();
    pool.TakeApart(
        term, [&] { heads.ends = true; },
        [&](std::uint32_t set, TermId rest) {
          heads.chars.push_back({set, rest});
        },
        [](RuleId, TermId) { KV_CHECK(false); }, [](TermId, TermId) { KV_CHECK(false); },
        [](std::uint32_t) { KV_CHECK(false); },
        [&](TermId other) {
          if (seen.insert(other).second) open.push_back(other);
        });
  }
  return heads;
}

// Sweeps over characters: events are where something begins (+) or ends to hold, and between them
// `active` counts what holds.
struct Event {
  std::uint32_t at;
  std::uint32_t what;
  bool begins;
};

template <typename Emit>
void Sweep(std::vector<Event> events, Emit emit) {
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.at < b.at; });
  std::map<std::uint32_t, int> active;
  for (std::size_t i = 0; i < events.size();) {
    const std::uint32_t at = events[i].at;
    for (; i < events.size() && events[i].at == at; ++i) {
      if (events[i].begins) {
        ++active[events[i].what];
      } else if (--active[events[i].what] == 0) {
        active.erase(events[i].what);
      }
    }
    if (i < events.size() && !active.empty()) emit({at, events[i].at - 1}, active);
  }
}

}  // namespace

std::uint32_t CharDfa::LabelOf(std::string_view utf8) const {
  if (states.empty()) return 0;
  std::uint32_t state = 0;
  const auto characters = base::Utf8ToCodePoints(utf8);
  for (const std::uint32_t c : characters.value()) {
    const auto& edges = states[state].edges;
    const auto edge = std::find_if(edges.begin(), edges.end(), [&](const Edge& e) {
      return c >= e.range.first && c <= e.range.last;
    });
    if (edge == edges.end()) return 0;
    state = edge->next;
  }
  return states[state].label;
}

Result<CharDfa> DfaOfTerm(TermPool& pool, TermId term) {
  CharDfa dfa;
  if (term == kNothingTerm) return dfa;
  Numbering<std::vector<TermId>> sets;
  sets.Of({term});
  for (std::uint32_t s = 0; s < sets.keys.size(); ++s) {
    if (sets.keys.size() > kMaxDfaStates) return TooLarge();
    const Heads heads = HeadsOf(pool, sets.keys[s]);
    CharDfa::State state;
    state.label = heads.ends ? 1 : 0;
    std::vector<Event> events;
    for (const auto& [set, rest] : heads.chars) {
      for (const CodePointRange& range : pool.set(set).ranges()) {
        events.push_back({range.first, rest, true});
        events.push_back({range.last + 1, rest, false});
      }
    }
    Sweep(std::move(events), [&](CodePointRange range, const auto& active) {
      std::vector<TermId> next;
      for (const auto& [rest, count] : active) next.push_back(rest);
      AddEdge({range, sets.Of(next)}, state.edges);
    });
    dfa.states.push_back(std::move(state));
  }
  return Trimmed(std::move(dfa));
}

Result<CharDfa> DfaOfLengths(std::uint64_t min, std::uint64_t max) {
  CharDfa dfa;
  if (min > max) return dfa;
  const std::uint64_t last = max == kNoMaximum ? min : max;
  if (last > kMaxDfaLength) {
    return MakeError(ErrorCode::kUsage, "a length of {} characters is above {}, the limit", last,
                     kMaxDfaLength);
  }
  const CodePointSet all = CodePointSet::All();
  for (std::uint64_t length = 0; length <= last; ++length) {
    CharDfa::State state;
    state.label = length >= min ? 1 : 0;
    const bool more = length < last || max == kNoMaximum;
    for (const CodePointRange& range : all.ranges()) {
      if (more) {
        state.edges.push_back(
            {range, static_cast<std::uint32_t>(std::min<std::uint64_t>(length + 1, last))});
      }
    }
    dfa.states.push_back(std::move(state));
  }
  return dfa;
}

CharDfa DfaOfNames(std::span<const std::string> names, std::uint32_t other) {
  // A tree of the names; what leaves it ends in a last state from which nothing returns.
  CharDfa dfa;
  std::vector<std::map<std::uint32_t, std::uint32_t>> tree(1);
  std::vector<std::uint32_t> labels = {other};
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::uint32_t node = 0;
    const auto characters = base::Utf8ToCodePoints(names[i]);
    for (const std::uint32_t c : characters.value()) {
      const auto [place, added] = tree[node].emplace(c, static_cast<std::uint32_t>(tree.size()));
      node = place->second;
      if (added) {
        tree.emplace_back();
        labels.push_back(other);
      }
    }
    labels[node] = static_cast<std::uint32_t>(i + 1);
  }
  const auto elsewhere = static_cast<std::uint32_t>(tree.size());
  for (std::uint32_t node = 0; node <= elsewhere; ++node) {
    CharDfa::State state;
    state.label = node == elsewhere ? other : labels[node];
    std::vector<CodePointRange> children;
    if (node < elsewhere) {
      for (const auto& [c, next] : tree[node]) {
        children.push_back({c, c});
        state.edges.push_back({{c, c}, next});
      }
    }
    if (other != 0) {
      const CodePointSet rest = CodePointSet(std::move(children)).Complement();
      for (const CodePointRange& range : rest.ranges()) {
        state.edges.push_back({range, elsewhere});
      }
      std::sort(state.edges.begin(), state.edges.end(),
                [](const auto& a, const auto& b) { return a.range < b.range; });
    }
    dfa.states.push_back(std::move(state));
  }
  return Trimmed(std::move(dfa));
}

std::optional<std::vector<std::string>> FewStrings(const CharDfa& dfa, std::size_t most) {
  using Beginning = std::pair<std::string, std::uint32_t>;
  std::vector<std::string> strings;
  if (dfa.empty()) return strings;
  // Every beginning leads to a string of its own, so there are never more of them than strings.
  std::vector<Beginning> open = {{"", 0}};
  for (std::size_t length = 0; !open.empty(); ++length) {
    if (length > most) return std::nullopt;
    std::vector<Beginning> longer;
    for (const auto& [text, at] : open) {
      const CharDfa::State& state = dfa.states[at];
      if (state.label != 0) strings.push_back(text);
      for (const CharDfa::Edge& edge : state.edges) {
        for (std::uint32_t c = edge.range.first; c <= edge.range.last; ++c) {
          if (longer.size() == most) return std::nullopt;
          longer.emplace_back(text, edge.next);
          base::AppendUtf8(c, longer.back().first);
        }
      }
    }
    if (strings.size() > most) return std::nullopt;
    open = std::move(longer);
  }
  return strings;
}

Result<CharDfa> ProductDfa(std::span<const CharDfa* const> parts, const LabelOf& label_of) {
  constexpr std::uint32_t kGone = ~std::uint32_t{0};  // This part can have no label any more.
  Numbering<std::vector<std::uint32_t>> tuples;
  std::vector<std::uint32_t> start;
  for (const CharDfa* part : parts) start.push_back(part->empty() ? kGone : 0);
  tuples.Of(start);
  CharDfa dfa;
  const CodePointSet all = CodePointSet::All();
  for (std::uint32_t s = 0; s < tuples.keys.size(); ++s) {
    if (tuples.keys.size() > kMaxDfaStates) return TooLarge();
    const std::vector<std::uint32_t> tuple = tuples.keys[s];
    CharDfa::State state;
    std::vector<std::uint32_t> labels(parts.size(), 0);
    std::vector<Event> events;
    const auto add = [&](CodePointRange range, std::size_t what) {
      events.push_back({range.first, static_cast<std::uint32_t>(what), true});
      events.push_back({range.last + 1, static_cast<std::uint32_t>(what), false});
    };
    std::vector<std::pair<std::size_t, std::uint32_t>> moves;  // A part and where it goes.
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (tuple[p] == kGone) continue;
      labels[p] = parts[p]->states[tuple[p]].label;
      for (const CharDfa::Edge& edge : parts[p]->states[tuple[p]].edges) {
        add(edge.range, moves.size());
        moves.push_back({p, edge.next});
      }
    }
    state.label = label_of(labels);
    for (const CodePointRange& range : all.ranges()) add(range, moves.size());
    Sweep(std::move(events), [&](CodePointRange range, const auto& active) {
      std::vector<std::uint32_t> next(parts.size(), kGone);
      for (const auto& [what, count] : active) {
        if (what < moves.size()) next[moves[what].first] = moves[what].second;
      }
      AddEdge({range, tuples.Of(next)}, state.edges);
    });
    dfa.states.push_back(std::move(state));
  }
  return Trimmed(std::move(dfa));
}

}  // namespace kvasir::constraints
