#include "constraints/json_schema.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "constraints/json_text.h"
#include "constraints/json_value.h"
#include "constraints/number_terms.h"
#include "constraints/schema.h"
#include "constraints/schema_nodes.h"
#include "constraints/text_cursor.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

// What the terms of one schema share. Borrows the pool, which owns the sources that keep this.
struct Shared {
  Shared(TermPool& pool, SchemaNodes made, bool plain)
      : nodes(std::move(made)),
        numbers(plain ? NumberSpelling::kPlain : NumberSpelling::kAny),
        speller(pool, plain ? StringSpelling::kPlain : StringSpelling::kAny) {}
  SchemaNodes nodes;
  NumberSpelling numbers;
  JsonSpeller speller;
  TermId blanks = kEmptyTerm;
};

// Things numbered in the order in which they were first met.
template <typename T>
class Numbered {
 public:
  std::uint32_t NumberOf(const T& thing) {
    const auto [known, added] = ids_.emplace(thing, static_cast<std::uint32_t>(things_.size()));
    if (added) things_.push_back(thing);
    return known->second;
  }
  const T& operator[](std::uint32_t number) const { return things_[number]; }

 private:
  std::vector<T> things_;
  std::map<T, std::uint32_t> ids_;
};

// Arrays behind their '['. A state is a place in one: before the first item or after an item, with
// so many items read and so much satisfied.
class ArrayTerms final : public LazyTerms {
 public:
  ArrayTerms(const ArrayPlan& plan, std::shared_ptr<Shared> shared)
      : plan_(plan), shared_(std::move(shared)) {}
  void set_source(std::uint32_t source) { source_ = source; }
  std::uint32_t Start() { return places_.NumberOf({0, 0, /*first=*/true}); }

  TermId Expand(TermPool& pool, std::uint32_t state) override {
    const Place place = places_[state];
    std::vector<TermId> items;
    const auto index = std::min<std::uint64_t>(place.index, plan_.items.size() - 1);
    for (const ValueOption& option : plan_.items[index]) {
      const Place next = {Counted(place.index + 1), place.satisfied | option.satisfies, false};
      if (place.index >= plan_.max || !option.usable ||
          !CanFinish(plan_, next.index, next.satisfied)) {
        continue;
      }
      items.push_back(
          pool.Concat(pool.Call(option.node), pool.Lazy(source_, places_.NumberOf(next))));
    }
    TermId item = pool.Alternate(items);
    if (!place.first) {
      const TermId parts[] = {pool.Text(","), shared_->blanks, item};
      item = pool.Concat(parts);
    }
    const bool may_close = place.index >= plan_.min && place.satisfied == plan_.some;
    const TermId close = may_close ? pool.Text("]") : kNothingTerm;
    return pool.Concat(shared_->blanks, pool.Alternate(close, item));
  }

 private:
  struct Place {
    std::uint64_t index = 0;
    SomeMask satisfied = 0;
    bool first = false;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  // Items are counted to where more makes no difference.
  std::uint64_t Counted(std::uint64_t index) const {
    if (plan_.max != kNoMaximum) return index;
    return std::min(index, std::max<std::uint64_t>(plan_.items.size() - 1, plan_.min));
  }

  const ArrayPlan& plan_;
  std::shared_ptr<Shared> shared_;
  std::uint32_t source_ = 0;
  Numbered<Place> places_;  // By state.
};

// Objects behind their '{'. A state is a place in one: before the first member, inside a name (with
// the automaton's state), or after a member; with what the members before have used.
class ObjectTerms final : public LazyTerms {
 public:
  ObjectTerms(const ObjectPlan& plan, std::shared_ptr<Shared> shared)
      : plan_(plan), shared_(std::move(shared)) {
    name_sets_.NumberOf(NameSet());  // kNoNames
  }
  void set_source(std::uint32_t source) { source_ = source; }
  std::uint32_t Start() { return places_.NumberOf({Where::kFirst, IdOf(NoProgress(plan_)), 0}); }

  TermId Expand(TermPool& pool, std::uint32_t state) override {
    const Place place = places_[state];
    if (place.where == Where::kName) return ExpandName(pool, place);
    TermId member = kNothingTerm;
    const std::uint32_t names = NamesFrom(allowed_[place.progress], 0);
    if (names != kNoNames) {
      const TermId name = pool.Enter(pool.Lazy(source_, places_.NumberOf({Where::kName, names, 0})),
                                     source_, place.progress);
      const TermId parts[] = {
          place.where == Where::kFirst ? kEmptyTerm : pool.Concat(pool.Text(","), shared_->blanks),
          pool.Text("\""), name};
      member = pool.Concat(parts);
    }
    const TermId close = MayClose(plan_, progress_[place.progress]) ? pool.Text("}") : kNothingTerm;
    return pool.Concat(shared_->blanks, pool.Alternate(close, member));
  }

  // Behind a name, which is the result's class: its value and what then may come.
  TermId Select(TermPool& pool, std::uint32_t progress, std::uint32_t result) override {
    const TermId parts[] = {shared_->blanks, pool.Text(":"), shared_->blanks,
                            ValueOf(pool, progress, plan_.classes[result])};
    return pool.Concat(parts);
  }

 private:
  static constexpr std::uint32_t kNoNames = 0;  // Of name_sets_: the empty one.
  using NameSet = std::vector<std::uint64_t>;   // [bits of classes]
  enum class Where : std::uint8_t { kFirst, kName, kNext };
  struct Place {
    Where where = Where::kFirst;
    std::uint32_t progress = 0;  // Index into progress_; inside a name, of name_sets_.
    std::uint32_t name = 0;      // State of the automaton.
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  TermId ExpandName(TermPool& pool, const Place& place) {
    std::vector<TermId> choices;
    const CharDfa::State& name = plan_.keys.states[place.name];
    const NameSet names = name_sets_[place.progress];
    const auto may_be = [&](std::size_t label) {
      return (names[(label - 1) / 64] >> ((label - 1) % 64) & 1) != 0;
    };
    if (name.label != 0 && may_be(name.label)) {
      choices.push_back(pool.Concat(pool.Text("\""), pool.Result(name.label - 1)));
    }
    for (const auto& [character, next] : MovesOf(place.name)) {
      const std::uint32_t left = NamesFrom(names, next);
      if (left == kNoNames) continue;
      const std::uint32_t there = places_.NumberOf({Where::kName, left, next});
      choices.push_back(pool.Concat(character, pool.Lazy(source_, there)));
    }
    return pool.Alternate(choices);
  }

  TermId ValueOf(TermPool& pool, std::uint32_t progress, const MemberClass& member) {
    std::vector<TermId> choices;
    for (const ValueOption& option : member.options) {
      ObjectProgress after = After(plan_, progress_[progress], member, option);
      if (!option.usable || !CanFinish(plan_, after)) continue;
      const std::uint32_t next = places_.NumberOf({Where::kNext, IdOf(std::move(after)), 0});
      choices.push_back(pool.Concat(pool.Call(option.node), pool.Lazy(source_, next)));
    }
    return pool.Alternate(choices);
  }

  // The same in every place of the object.
  const JsonSpeller::Moves& MovesOf(std::uint32_t name) {
    moves_.resize(plan_.keys.states.size());
    if (!moves_[name]) moves_[name] = shared_->speller.MovesOf(plan_.keys.states[name]);
    return *moves_[name];
  }

  // Which of the names can still be reached from a state of the automaton. Where that is the same,
  // so is what may come until the name ends, whatever members there were.
  std::uint32_t NamesFrom(NameSet names, std::size_t state) {
    if (plan_.keys.empty()) return kNoNames;
    std::uint64_t any = 0;
    for (std::size_t w = 0; w < names.size(); ++w) any |= names[w] &= plan_.reach[state][w];
    return any == 0 ? kNoNames : name_sets_.NumberOf(names);
  }
  std::uint32_t IdOf(ObjectProgress progress) {
    const auto [known, added] =
        progress_ids_.emplace(progress, static_cast<std::uint32_t>(progress_.size()));
    if (!added) return known->second;
    allowed_.push_back(MayCome(plan_, progress));
    progress_.push_back(std::move(progress));
    return known->second;
  }

  const ObjectPlan& plan_;
  std::shared_ptr<Shared> shared_;
  std::uint32_t source_ = 0;
  Numbered<Place> places_;  // By state.
  std::vector<ObjectProgress> progress_;
  std::vector<NameSet> allowed_;  // [progress] The classes that may come.
  Numbered<NameSet> name_sets_;
  std::map<ObjectProgress, std::uint32_t> progress_ids_;
  std::vector<std::optional<JsonSpeller::Moves>> moves_;  // [states of keys]
};

template <typename Source>
TermId AddLazy(TermPool& pool, std::shared_ptr<Source> source, std::uint32_t start) {
  const std::uint32_t id = pool.AddSource(source);
  source->set_source(id);
  return pool.Lazy(id, start);
}

// The texts of the values of one node.
TermId TermOf(TermPool& pool, const SchemaNode& node, const std::shared_ptr<Shared>& shared) {
  std::vector<TermId> choices;
  const std::pair<JsonType, const char*> plain[] = {
      {JsonType::kNull, "null"}, {JsonType::kFalse, "false"}, {JsonType::kTrue, "true"}};
  for (const auto& [type, text] : plain) {
    if ((node.plain & TypeBit(type)) != 0) choices.push_back(pool.Text(text));
  }
  for (const NumberSet& set : node.numbers) {
    choices.push_back(set.AllowsAll()
                          ? AnyNumberTerm(pool, shared->numbers)
                          : AddLazy(pool, std::make_shared<NumberTerms>(set, shared->numbers), 0));
  }
  for (const SharedDfa& dfa : node.strings) {
    auto source = std::make_shared<JsonStringTerms>(
        dfa, std::shared_ptr<JsonSpeller>(shared, &shared->speller));
    choices.push_back(pool.Concat(pool.Text("\""), AddLazy(pool, std::move(source), 0)));
  }
  for (const ArrayPlan& plan : node.arrays) {
    auto source = std::make_shared<ArrayTerms>(plan, shared);
    const std::uint32_t start = source->Start();
    choices.push_back(pool.Concat(pool.Text("["), AddLazy(pool, std::move(source), start)));
  }
  for (const ObjectPlan& plan : node.objects) {
    auto source = std::make_shared<ObjectTerms>(plan, shared);
    const std::uint32_t start = source->Start();
    choices.push_back(pool.Concat(pool.Text("{"), AddLazy(pool, std::move(source), start)));
  }
  return pool.Alternate(choices);
}

// The place of the innermost schema, the first of such, that no value satisfies, and without which
// something satisfies the whole. Nothing if there is none, or it is not among those tried.
std::string PlaceOfConflict(SchemaSet set) {
  constexpr std::size_t kMostTried = 32;
  const SchemaId whole = set.root;
  const auto is = [&](SchemaId root, bool satisfied) {
    set.root = root;
    const auto nodes = SchemaNodes::Make(set);
    return nodes && nodes.value().nodes()[nodes.value().root()].inhabited == satisfied;
  };
  std::string place;
  for (SchemaId id = kFalseSchema + 1; id < std::min(set.schemas.size(), kMostTried); ++id) {
    const std::string own = set.schemas[id].place;
    if (id == whole || !own.starts_with(place.empty() ? "" : place + "/") || !is(id, false)) {
      continue;
    }
    const Schema saved = std::exchange(set.schemas[id], Schema());
    if (is(whole, true)) place = own;
    set.schemas[id] = saved;
  }
  return place;
}

}  // namespace

Result<Grammar> CompileJsonSchema(std::string_view text, const JsonSchemaOptions& options) {
  KV_TRY(CheckConstraintText("schema", text));
  KV_TRY(const JsonValue document, ParseJson("schema", text));
  KV_TRY(const SchemaSet schemas, ReadSchema(document, options));
  KV_TRY(SchemaNodes nodes, SchemaNodes::Make(schemas));
  if (!nodes.nodes()[nodes.root()].inhabited) {
    const std::string place = PlaceOfConflict(schemas);
    if (place.empty()) return MakeError(ErrorCode::kUsage, "schema: no value satisfies it");
    return MakeError(ErrorCode::kUsage,
                     "schema: no value satisfies it, since none satisfies what is at '{}'", place);
  }
  Grammar grammar;
  TermPool& pool = *grammar.pool;
  const auto shared = std::make_shared<Shared>(pool, std::move(nodes), options.compact);
  const TermId blanks =
      pool.Repeat(pool.Chars(CodePointSet({{' ', ' '}, {'\t', '\t'}, {'\n', '\n'}, {'\r', '\r'}})),
                  0, kNoMaximum);
  if (!options.compact) shared->blanks = blanks;
  for (const SchemaNode& node : shared->nodes.nodes()) {
    // A value begins with a character, never with another value.
    grammar.ranks.push_back(static_cast<std::uint32_t>(grammar.rules.size()));
    grammar.rules.push_back(TermOf(pool, node, shared));
  }
  grammar.start = pool.Call(shared->nodes.root());
  if (options.outer_blanks) {
    grammar.start = pool.Concat(blanks, pool.Concat(grammar.start, blanks));
  }
  return grammar;
}

}  // namespace kvasir::constraints
