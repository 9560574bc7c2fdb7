#include "constraints/schema_nodes.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

// The longest arrays that are looked through for items that `some` demands.
constexpr std::uint64_t kMaxSearchedItems = 4'096;

// The names that an automaton may allow to be taken one by one.
constexpr std::size_t kMostNamesListed = 256;

bool Bit(const std::vector<std::uint64_t>& bits, std::size_t i) {
  return (bits[i / 64] >> (i % 64) & 1) != 0;
}
void SetBit(std::vector<std::uint64_t>& bits, std::size_t i) {
  bits[i / 64] |= std::uint64_t{1} << (i % 64);
}

bool AnyUsable(const std::vector<ValueOption>& options, SomeMask satisfying = 0) {
  return std::any_of(options.begin(), options.end(), [&](const ValueOption& option) {
    return option.usable && (option.satisfies & satisfying) == satisfying;
  });
}

// For each state of the automaton, the classes (labels − 1) that can be reached from it.
std::vector<std::vector<std::uint64_t>> Reach(const CharDfa& keys, std::size_t classes) {
  std::vector<std::vector<std::uint64_t>> reach(keys.states.size(),
                                                std::vector<std::uint64_t>((classes + 63) / 64, 0));
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t s = keys.states.size(); s-- > 0;) {
      std::vector<std::uint64_t> now = reach[s];
      if (keys.states[s].label != 0) SetBit(now, keys.states[s].label - 1);
      for (const CharDfa::Edge& edge : keys.states[s].edges) {
        for (std::size_t w = 0; w < now.size(); ++w) now[w] |= reach[edge.next][w];
      }
      if (now == reach[s]) continue;
      reach[s] = std::move(now);
      changed = true;
    }
  }
  return reach;
}

}  // namespace

// --- Arrays -------------------------------------------------------------------------------------

bool CanFinish(const ArrayPlan& plan, std::uint64_t index, SomeMask satisfied) {
  if (index > plan.max) return false;
  const std::uint64_t steady = plan.items.size() - 1;
  if (plan.some == 0) {
    for (std::uint64_t i = std::min(index, steady); i < plan.min; ++i) {
      if (!AnyUsable(plan.items[i])) return false;
      if (i == steady) break;
    }
    return true;
  }
  // From `far` on nothing changes but what is satisfied.
  const std::uint64_t far = plan.max == kNoMaximum ? std::max(steady, plan.min) : plan.max;
  std::set<std::pair<std::uint64_t, SomeMask>> seen;
  std::vector<std::pair<std::uint64_t, SomeMask>> open = {{std::min(index, far), satisfied}};
  while (!open.empty()) {
    const auto [i, mask] = open.back();
    open.pop_back();
    if (!seen.insert({i, mask}).second) continue;
    if (i >= plan.min && mask == plan.some) return true;
    if (i >= plan.max) continue;
    for (const ValueOption& option : plan.items[std::min(i, steady)]) {
      if (option.usable) open.push_back({std::min(i + 1, far), mask | option.satisfies});
    }
  }
  return false;
}

Result<ArrayPlan> SchemaNodes::Plan(const ArrayShape& shape) {
  ArrayPlan plan;
  plan.min = shape.min;
  plan.max = shape.max;
  std::size_t steady = shape.prefix.size();
  for (const auto& [from, demand] : shape.some) steady = std::max(steady, from);
  if (shape.some.size() > kMaxSome ||
      (!shape.some.empty() &&
       std::max(plan.min, plan.max == kNoMaximum ? steady : plan.max) > kMaxSearchedItems)) {
    return MakeError(ErrorCode::kUsage,
                     "schema: more than {} demands on some item of an array, or any in arrays of "
                     "more than {} items, are not supported",
                     kMaxSome, kMaxSearchedItems);
  }
  plan.some = (SomeMask{1} << shape.some.size()) - 1;
  for (std::size_t i = 0; i <= steady; ++i) {
    std::vector<std::pair<SomeMask, Demand>> some;
    for (std::size_t s = 0; s < shape.some.size(); ++s) {
      if (i >= shape.some[s].first) some.push_back({SomeMask{1} << s, shape.some[s].second});
    }
    plan.items.push_back(Options(i < shape.prefix.size() ? shape.prefix[i] : shape.rest, some));
  }
  return plan;
}

// --- Objects ------------------------------------------------------------------------------------

ObjectProgress NoProgress(const ObjectPlan& plan) {
  ObjectProgress progress;
  progress.seen.assign((plan.names.size() + 63) / 64, 0);
  return progress;
}

bool MayClose(const ObjectPlan& plan, const ObjectProgress& progress) {
  if (progress.count < plan.min || progress.satisfied != plan.some) return false;
  for (std::size_t n = 0; n < plan.names.size(); ++n) {
    if (plan.required[n] && !Bit(progress.seen, n)) return false;
  }
  return true;
}

namespace {

// What the members that an object has not had can still bring. Counts, so that one member can be
// taken out of it without looking at the others.
struct Outlook {
  std::uint64_t missing = 0;     // Required members.
  std::uint64_t impossible = 0;  // Of these, those that no value satisfies.
  std::uint64_t available = 0;   // Classes with a value.
  bool others = false;           // One of these comes as often as one likes.
  // [bits of `some`] the classes, and the missing members, with a value that satisfies it.
  std::array<std::uint64_t, kMaxSome> by_any = {}, by_missing = {};
};

bool IsRequired(const ObjectPlan& plan, const MemberClass& member) {
  return member.name >= 0 && plan.required[static_cast<std::size_t>(member.name)];
}

// Adds the class, `sign` times: 1 or -1.
void Count(const ObjectPlan& plan, const MemberClass& member, std::uint64_t sign, Outlook& to) {
  if (!AnyUsable(member.options)) return;
  to.available += sign;
  for (std::size_t bit = 0; bit < kMaxSome; ++bit) {
    if (!AnyUsable(member.options, SomeMask{1} << bit)) continue;
    to.by_any[bit] += sign;
    if (IsRequired(plan, member)) to.by_missing[bit] += sign;
  }
}

Outlook OutlookOf(const ObjectPlan& plan, const ObjectProgress& progress) {
  Outlook outlook;
  for (const MemberClass& member : plan.classes) {
    if (member.name >= 0 && Bit(progress.seen, static_cast<std::size_t>(member.name))) continue;
    Count(plan, member, 1, outlook);
    outlook.others = outlook.others || (member.name < 0 && AnyUsable(member.options));
  }
  for (std::size_t n = 0; n < plan.names.size(); ++n) {
    if (!plan.required[n] || Bit(progress.seen, n)) continue;
    ++outlook.missing;
    const int own = plan.class_of_name[n];
    if (own < 0 || !AnyUsable(plan.classes[static_cast<std::size_t>(own)].options)) {
      ++outlook.impossible;
    }
  }
  return outlook;
}

// Once a member of the class has come.
Outlook Without(const ObjectPlan& plan, const MemberClass& member, Outlook outlook) {
  if (member.name < 0) return outlook;
  Count(plan, member, ~std::uint64_t{0}, outlook);
  if (IsRequired(plan, member)) --outlook.missing;
  return outlook;
}

bool CanFinish(const ObjectPlan& plan, std::uint64_t count, SomeMask satisfied,
               const Outlook& outlook) {
  bool one_more = false;  // For what the missing members cannot satisfy.
  for (std::size_t bit = 0; bit < kMaxSome; ++bit) {
    if ((plan.some & ~satisfied & SomeMask{1} << bit) == 0) continue;
    if (outlook.by_any[bit] == 0) return false;
    one_more = one_more || outlook.by_missing[bit] == 0;
  }
  const std::uint64_t more = outlook.missing + (one_more ? 1 : 0);
  return outlook.impossible == 0 && (outlook.others || count + outlook.available >= plan.min) &&
         (plan.max == kNoMaximum || count + more <= plan.max);
}

// Members, after one more; counted to where more makes no difference.
std::uint64_t CountAfter(const ObjectPlan& plan, std::uint64_t count) {
  if (plan.max == kNoMaximum) return std::min(count + 1, plan.min);
  return count == plan.max ? count + 1 : std::min(count + 1, plan.max);
}

}  // namespace

bool CanFinish(const ObjectPlan& plan, const ObjectProgress& progress) {
  return CanFinish(plan, progress.count, progress.satisfied, OutlookOf(plan, progress));
}

ObjectProgress After(const ObjectPlan& plan, const ObjectProgress& progress,
                     const MemberClass& member, const ValueOption& option) {
  ObjectProgress after = progress;
  if (member.name >= 0) SetBit(after.seen, static_cast<std::size_t>(member.name));
  after.satisfied |= option.satisfies;
  after.count = CountAfter(plan, progress.count);
  return after;
}

std::vector<std::uint64_t> MayCome(const ObjectPlan& plan, const ObjectProgress& progress) {
  std::vector<std::uint64_t> classes((plan.classes.size() + 63) / 64, 0);
  if (progress.count >= plan.max) return classes;
  const Outlook outlook = OutlookOf(plan, progress);
  const std::uint64_t count = CountAfter(plan, progress.count);
  for (std::size_t c = 0; c < plan.classes.size(); ++c) {
    const MemberClass& member = plan.classes[c];
    if (member.name >= 0 && Bit(progress.seen, static_cast<std::size_t>(member.name))) continue;
    const Outlook then = Without(plan, member, outlook);
    const bool may =
        std::any_of(member.options.begin(), member.options.end(), [&](const ValueOption& option) {
          return option.usable &&
                 CanFinish(plan, count, progress.satisfied | option.satisfies, then);
        });
    if (may) SetBit(classes, c);
  }
  return classes;
}

Result<void> SchemaNodes::AddClasses(const ObjectShape& shape, ObjectPlan& plan) {
  std::vector<SharedDfa> dfas;
  const auto index_of = [&](const SharedDfa& dfa) {
    const auto place = std::find(dfas.begin(), dfas.end(), dfa);
    if (place != dfas.end()) return static_cast<std::size_t>(place - dfas.begin());
    dfas.push_back(dfa);
    return dfas.size() - 1;
  };
  std::set<std::string> names = shape.required;
  for (const auto* list : {&shape.members, &shape.some}) {
    for (const auto& [selector, demand] : *list) {
      if (selector.kind == NameSelector::Kind::kName) names.insert(selector.name);
      if (selector.kind == NameSelector::Kind::kDfa) index_of(selector.dfa);
      if (selector.kind != NameSelector::Kind::kOthers) continue;
      names.insert(selector.known->names.begin(), selector.known->names.end());
      for (const SharedDfa& dfa : selector.known->patterns) index_of(dfa);
    }
  }
  if ((shape.min > 0 || !shape.some.empty()) && shape.some.size() <= 1) {
    // Where members are demanded, few possible names are known ones: each comes once.
    for (const SharedDfa& dfa : dfas) {
      const auto few = FewStrings(*dfa, kMostNamesListed);
      if (few) names.insert(few->begin(), few->end());
    }
  }
  plan.names.assign(names.begin(), names.end());
  plan.class_of_name.assign(plan.names.size(), -1);
  for (const std::string& name : plan.names) plan.required.push_back(shape.required.contains(name));

  const CharDfa by_name = DfaOfNames(plan.names, static_cast<std::uint32_t>(plan.names.size() + 1));
  std::vector<const CharDfa*> parts = {&by_name};
  for (const SharedDfa& dfa : dfas) parts.push_back(dfa.get());
  // A class is a name, or no known one, and which automata it is in.
  std::map<std::vector<std::uint32_t>, std::uint32_t> labels;
  const auto label_of = [&](std::span<const std::uint32_t> part_labels) -> std::uint32_t {
    std::vector<std::uint32_t> key(part_labels.begin(), part_labels.end());
    for (std::size_t i = 1; i < key.size(); ++i) key[i] = key[i] != 0 ? 1 : 0;
    const auto [place, added] = labels.emplace(key, 0);
    if (!added) return place->second;
    const bool known = key[0] <= plan.names.size();
    const auto selects = [&](const NameSelector& selector) {
      const auto in = [&](const SharedDfa& dfa) { return key[1 + index_of(dfa)] != 0; };
      switch (selector.kind) {
        case NameSelector::Kind::kName:
          return known && plan.names[key[0] - 1] == selector.name;
        case NameSelector::Kind::kDfa:
          return in(selector.dfa) == selector.inside;
        default:
          return !(known && selector.known->names.contains(plan.names[key[0] - 1])) &&
                 std::none_of(selector.known->patterns.begin(), selector.known->patterns.end(), in);
      }
    };
    Demand demand;
    for (const auto& [selector, part] : shape.members) {
      if (selects(selector)) demand = Both(demand, part);
    }
    if (demand == kImpossible) return 0;
    std::vector<std::pair<SomeMask, Demand>> some;
    for (std::size_t i = 0; i < shape.some.size(); ++i) {
      if (selects(shape.some[i].first)) some.push_back({SomeMask{1} << i, shape.some[i].second});
    }
    MemberClass member;
    member.name = known ? static_cast<int>(key[0] - 1) : -1;
    member.options = Options(demand, some);
    if (known) plan.class_of_name[key[0] - 1] = static_cast<int>(plan.classes.size());
    plan.classes.push_back(std::move(member));
    return place->second = static_cast<std::uint32_t>(plan.classes.size());
  };
  KV_TRY(plan.keys, ProductDfa(parts, label_of));
  plan.reach = Reach(plan.keys, plan.classes.size());
  return base::Success();
}

namespace {

// Names that a schema does not list may come twice in a text; of such members a reader keeps one,
// mostly the last. So they must not be counted on to differ, nor the first one to be kept.
Result<void> CheckRepeatedNames(const ObjectShape& shape, const ObjectPlan& plan) {
  for (const MemberClass& member : plan.classes) {
    if (member.name >= 0) continue;
    if (shape.min > shape.required.size() + 1) {
      return MakeError(ErrorCode::kUsage,
                       "schema: minProperties {} is not supported where more than {} names are "
                       "possible and only {} members are required: names might repeat",
                       shape.min, kMostNamesListed, shape.required.size());
    }
    const auto differs = [&](const ValueOption& option) {
      return option.satisfies != member.options.front().satisfies;
    };
    if (std::any_of(member.options.begin(), member.options.end(), differs)) {
      return MakeError(ErrorCode::kUsage,
                       "schema: a demand on the value of some member ('not' or 'oneOf' with "
                       "additionalProperties or patternProperties) is not supported where more "
                       "than {} names are possible: names might repeat",
                       kMostNamesListed);
    }
  }
  return base::Success();
}

}  // namespace

Result<ObjectPlan> SchemaNodes::Plan(const ObjectShape& shape) {
  if (shape.some.size() > kMaxSome || (shape.some.size() > 1 && shape.max != kNoMaximum)) {
    return MakeError(ErrorCode::kUsage,
                     "schema: more than {} demands on some member of an object, or several beside "
                     "maxProperties, are not supported",
                     kMaxSome);
  }
  ObjectPlan plan;
  plan.min = shape.min;
  plan.max = shape.max;
  plan.some = (SomeMask{1} << shape.some.size()) - 1;
  KV_TRY(AddClasses(shape, plan));
  KV_TRY(CheckRepeatedNames(shape, plan));
  for (SomeMask bit = 1; shape.some.size() > 1 && bit < plan.some; bit <<= 1) {
    const bool free = std::any_of(plan.classes.begin(), plan.classes.end(), [&](const auto& m) {
      return m.name < 0 && std::any_of(m.options.begin(), m.options.end(),
                                       [&](const auto& o) { return (o.satisfies & bit) != 0; });
    });
    if (free) continue;
    return MakeError(ErrorCode::kUsage,
                     "schema: several demands on some of a few known members are not supported");
  }
  return plan;
}

// --- Nodes --------------------------------------------------------------------------------------

NodeId SchemaNodes::IdOf(const Demand& demand) {
  const auto [place, added] = ids_.emplace(demand, static_cast<NodeId>(nodes_.size()));
  if (added) nodes_.emplace_back().demand = demand;
  return place->second;
}

std::vector<ValueOption> SchemaNodes::Options(
    const Demand& demand, const std::vector<std::pair<SomeMask, Demand>>& some) {
  std::vector<ValueOption> options;
  SomeMask always = 0;
  std::vector<std::pair<SomeMask, Demand>> guessed;  // True of some values only.
  for (const auto& one : some) {
    if (Both(demand, one.second) == demand) {
      always |= one.first;
    } else {
      guessed.push_back(one);
    }
  }
  for (std::uint32_t subset = 0; subset < (1u << guessed.size()); ++subset) {
    Demand whole = demand;
    SomeMask satisfies = always;
    for (std::size_t i = 0; i < guessed.size(); ++i) {
      if ((subset >> i & 1) == 0) continue;
      whole = Both(whole, guessed[i].second);
      satisfies |= guessed[i].first;
    }
    if (whole != kImpossible) options.push_back({IdOf(whole), satisfies, false});
  }
  return options;
}

Result<void> SchemaNodes::Fill(NodeId id) {
  SchemaNode node;
  node.demand = nodes_[id].demand;
  for (const JsonType type : {JsonType::kNull, JsonType::kFalse, JsonType::kTrue}) {
    KV_TRY(const auto shapes, shapes_.Of<PlainShape>(node.demand, type));
    if (!shapes.empty()) node.plain |= TypeBit(type);
  }
  KV_TRY(auto numbers, shapes_.Of<NumberSet>(node.demand, JsonType::kNumber));
  for (NumberSet& set : numbers) {
    if (set.AllowsAll()) {
      node.numbers = {set};
      break;
    }
    if (!set.empty()) node.numbers.push_back(std::move(set));
  }
  KV_TRY(const auto strings, shapes_.Of<StringShape>(node.demand, JsonType::kString));
  for (const StringShape& shape : strings) {
    KV_TRY(auto dfa, shapes_.StringsOf(shape));
    if (!dfa->empty()) node.strings.push_back(std::move(dfa));
  }
  KV_TRY(const auto arrays, shapes_.Of<ArrayShape>(node.demand, JsonType::kArray));
  for (const ArrayShape& shape : arrays) {
    KV_TRY(auto plan, Plan(shape));
    node.arrays.push_back(std::move(plan));
  }
  KV_TRY(const auto objects, shapes_.Of<ObjectShape>(node.demand, JsonType::kObject));
  for (const ObjectShape& shape : objects) {
    KV_TRY(auto plan, Plan(shape));
    node.objects.push_back(std::move(plan));
  }
  nodes_[id] = std::move(node);
  return base::Success();
}

void SchemaNodes::UpdateOptions(SchemaNode& node) const {
  const auto update = [&](std::vector<ValueOption>& options) {
    for (ValueOption& option : options) option.usable = nodes_[option.node].inhabited;
  };
  for (ArrayPlan& plan : node.arrays) {
    for (auto& options : plan.items) update(options);
  }
  for (ObjectPlan& plan : node.objects) {
    for (MemberClass& member : plan.classes) update(member.options);
  }
}

// The least solution: values inside values are found from the innermost outwards.
void SchemaNodes::FindInhabited() {
  const auto array = [](const ArrayPlan& plan) { return CanFinish(plan, 0, 0); };
  const auto object = [](const ObjectPlan& plan) { return CanFinish(plan, NoProgress(plan)); };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t id = nodes_.size(); id-- > 0;) {
      SchemaNode& node = nodes_[id];
      if (node.inhabited) continue;
      UpdateOptions(node);
      node.inhabited = node.plain != 0 || !node.numbers.empty() || !node.strings.empty() ||
                       std::any_of(node.arrays.begin(), node.arrays.end(), array) ||
                       std::any_of(node.objects.begin(), node.objects.end(), object);
      changed = changed || node.inhabited;
    }
  }
  for (SchemaNode& node : nodes_) {
    UpdateOptions(node);
    std::erase_if(node.arrays, [&](const ArrayPlan& plan) { return !array(plan); });
    std::erase_if(node.objects, [&](const ObjectPlan& plan) { return !object(plan); });
  }
}

Result<SchemaNodes> SchemaNodes::Make(const SchemaSet& schemas) {
  SchemaNodes nodes(schemas);
  nodes.IdOf(Normalized({Positive(schemas.root)}));
  for (NodeId id = 0; id < nodes.nodes_.size(); ++id) {
    if (nodes.nodes_.size() > kMaxSchemaNodes) {
      return MakeError(ErrorCode::kUsage,
                       "schema: it makes more than {} different demands, the "
                       "limit",
                       kMaxSchemaNodes);
    }
    KV_TRY(nodes.Fill(id));
  }
  nodes.FindInhabited();
  return nodes;
}

}  // namespace kvasir::constraints
