#include "constraints/schema_shapes.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/check.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr int kMaxLook = 3;  // Values inside values that a quick look goes into.

base::Error TooMany(std::string_view place) {
  return MakeError(ErrorCode::kUsage,
                   "schema, at '{}': its combinations have more than {} alternatives, the limit",
                   place, kMaxAlternatives);
}

template <typename T>
void Append(std::vector<T>&& more, std::vector<T>& all) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

Demand Normalized(Demand demand) {
  std::sort(demand.begin(), demand.end());
  demand.erase(std::unique(demand.begin(), demand.end()), demand.end());
  std::erase(demand, Positive(kTrueSchema));
  std::erase(demand, Negative(kFalseSchema));
  for (std::size_t i = 0; i < demand.size(); ++i) {
    const bool opposed = i > 0 && (demand[i] ^ 1) == demand[i - 1];
    if (opposed || demand[i] == Positive(kFalseSchema) || demand[i] == Negative(kTrueSchema)) {
      return kImpossible;
    }
  }
  return demand;
}

Demand Both(const Demand& a, const Demand& b) {
  Demand both = a;
  both.insert(both.end(), b.begin(), b.end());
  return Normalized(std::move(both));
}

// --- Numbers, strings and the plain types -------------------------------------------------------

template <>
Result<std::vector<PlainShape>> SchemaShapes::Own(const Schema&) {
  return std::vector<PlainShape>(1);
}
template <>
Result<std::vector<PlainShape>> SchemaShapes::OwnNegated(const Schema&) {
  return std::vector<PlainShape>();
}
Result<PlainShape> SchemaShapes::Intersect(const PlainShape&, const PlainShape&) {
  return PlainShape();
}
Result<bool> SchemaShapes::IsEmpty(const PlainShape&) { return false; }

template <>
Result<std::vector<NumberSet>> SchemaShapes::Own(const Schema& schema) {
  NumberSet number = schema.number;
  if (schema.integers_only) {
    NumberSet integers;
    integers.multiple_of = Decimal{1, 0};
    KV_TRY(number, Intersect(number, integers));
  }
  return std::vector<NumberSet>{number};
}
template <>
Result<std::vector<NumberSet>> SchemaShapes::OwnNegated(const Schema& schema) {
  std::vector<NumberSet> choices;
  const NumberSet& number = schema.number;
  if (number.min) choices.emplace_back().max = {number.min->value, !number.min->open};
  if (number.max) choices.emplace_back().min = {number.max->value, !number.max->open};
  if (number.multiple_of) choices.emplace_back().not_multiple_of = number.multiple_of;
  if (schema.integers_only) choices.emplace_back().not_multiple_of = Decimal{1, 0};
  return choices;
}
Result<NumberSet> SchemaShapes::Intersect(const NumberSet& a, const NumberSet& b) {
  auto both = a.Intersect(b);
  if (!both) {
    return MakeError(ErrorCode::kUsage,
                     "schema: numbers that are multiples of neither of two are not supported");
  }
  return std::move(*both);
}
Result<bool> SchemaShapes::IsEmpty(const NumberSet& shape) { return shape.empty(); }

template <>
Result<std::vector<StringShape>> SchemaShapes::Own(const Schema& schema) {
  StringShape shape;
  shape.min = schema.min_length;
  shape.max = schema.max_length;
  for (const SharedDfa& dfa : schema.patterns) shape.parts.push_back({dfa, true});
  return std::vector<StringShape>{shape};
}
template <>
Result<std::vector<StringShape>> SchemaShapes::OwnNegated(const Schema& schema) {
  std::vector<StringShape> choices;
  if (schema.min_length > 0) choices.emplace_back().max = schema.min_length - 1;
  if (schema.max_length != kNoMaximum) choices.emplace_back().min = schema.max_length + 1;
  for (const SharedDfa& dfa : schema.patterns) choices.emplace_back().parts = {{dfa, false}};
  return choices;
}
Result<StringShape> SchemaShapes::Intersect(const StringShape& a, const StringShape& b) {
  StringShape both = a;
  both.min = std::max(a.min, b.min);
  both.max = std::min(a.max, b.max);
  for (const auto& part : b.parts) {
    if (std::find(both.parts.begin(), both.parts.end(), part) == both.parts.end()) {
      both.parts.push_back(part);
    }
  }
  return both;
}
Result<bool> SchemaShapes::IsEmpty(const StringShape& shape) {
  if (shape.min > shape.max) return true;
  if (shape.parts.empty()) return false;
  KV_TRY(const SharedDfa dfa, StringsOf(shape));
  return dfa->empty();
}

Result<SharedDfa> SchemaShapes::StringsOf(const StringShape& shape) {
  const bool any_length = shape.min == 0 && shape.max == kNoMaximum;
  if (any_length && shape.parts.size() == 1 && shape.parts[0].second) return shape.parts[0].first;
  std::vector<std::pair<const CharDfa*, bool>> key;
  for (const auto& [dfa, inside] : shape.parts) key.push_back({dfa.get(), inside});
  auto& [known, keep] = strings_[{key, {shape.min, shape.max}}];
  if (known != nullptr) return known;
  KV_TRY(const CharDfa lengths, DfaOfLengths(shape.min, shape.max));
  std::vector<const CharDfa*> parts;
  if (!any_length || key.empty()) {
    parts.push_back(&lengths);
    key.insert(key.begin(), {&lengths, true});
  }
  for (const auto& [dfa, inside] : shape.parts) parts.push_back(dfa.get());
  if (parts.size() == 1 && key[0].second) {
    known = std::make_shared<const CharDfa>(*parts[0]);
  } else {
    KV_TRY(CharDfa product, ProductDfa(parts, [&](std::span<const std::uint32_t> labels) {
             for (std::size_t i = 0; i < labels.size(); ++i) {
               if ((labels[i] != 0) != key[i].second) return 0u;
             }
             return 1u;
           }));
    known = std::make_shared<const CharDfa>(std::move(product));
  }
  keep = shape.parts;
  return known;
}

// --- Arrays -------------------------------------------------------------------------------------

template <>
Result<std::vector<ArrayShape>> SchemaShapes::Own(const Schema& schema) {
  ArrayShape shape;
  for (const SchemaId item : schema.prefix_items) {
    shape.prefix.push_back(Normalized({Positive(item)}));
  }
  shape.rest = Normalized({Positive(schema.items)});
  shape.min = schema.min_items;
  shape.max = schema.max_items;
  for (const SchemaId item : schema.contains) {
    shape.some.push_back({0, Normalized({Positive(item)})});
  }
  return std::vector<ArrayShape>{shape};
}
template <>
Result<std::vector<ArrayShape>> SchemaShapes::OwnNegated(const Schema& schema) {
  std::vector<ArrayShape> choices;
  if (schema.min_items > 0) choices.emplace_back().max = schema.min_items - 1;
  if (schema.max_items != kNoMaximum) choices.emplace_back().min = schema.max_items + 1;
  for (std::size_t i = 0; i < schema.prefix_items.size(); ++i) {
    ArrayShape& shape = choices.emplace_back();
    shape.prefix.resize(i);
    shape.prefix.push_back(Normalized({Negative(schema.prefix_items[i])}));
    shape.min = i + 1;
  }
  if (schema.items != kTrueSchema) {
    choices.emplace_back().some = {
        {schema.prefix_items.size(), Normalized({Negative(schema.items)})}};
  }
  for (const SchemaId item : schema.contains) {
    choices.emplace_back().rest = Normalized({Negative(item)});
  }
  return choices;
}
Result<ArrayShape> SchemaShapes::Intersect(const ArrayShape& a, const ArrayShape& b) {
  ArrayShape both;
  for (std::size_t i = 0; i < std::max(a.prefix.size(), b.prefix.size()); ++i) {
    both.prefix.push_back(Both(i < a.prefix.size() ? a.prefix[i] : a.rest,
                               i < b.prefix.size() ? b.prefix[i] : b.rest));
  }
  both.rest = Both(a.rest, b.rest);
  both.min = std::max(a.min, b.min);
  both.max = std::min(a.max, b.max);
  both.some = a.some;
  both.some.insert(both.some.end(), b.some.begin(), b.some.end());
  return both;
}
Result<bool> SchemaShapes::IsEmpty(const ArrayShape& shape) {
  if (shape.min > shape.max) return true;
  for (std::size_t i = 0; i < std::min<std::uint64_t>(shape.min, shape.prefix.size() + 1); ++i) {
    KV_TRY(const bool none, IsEmpty(i < shape.prefix.size() ? shape.prefix[i] : shape.rest));
    if (none) return true;
  }
  return false;
}

// --- All types ----------------------------------------------------------------------------------

Result<bool> SchemaShapes::IsEmpty(const Demand& demand) {
  if (demand == kImpossible) return true;
  if (demand.empty() || depth_ == kMaxLook) return false;
  const auto known = empty_.find(demand);
  if (known != empty_.end()) return known->second;
  std::set<Literal> outside;
  outside.swap(active_);  // Another value: the same schemas may concern it.
  ++depth_;
  bool empty = true;
  const auto look = [&](auto shape, JsonType type) -> Result<void> {
    if (!empty) return base::Success();
    KV_TRY(const auto shapes, Of<decltype(shape)>(demand, type));
    empty = shapes.empty();
    return base::Success();
  };
  for (const JsonType type : {JsonType::kNull, JsonType::kFalse, JsonType::kTrue}) {
    KV_TRY(look(PlainShape(), type));
  }
  KV_TRY(look(NumberSet(), JsonType::kNumber));
  KV_TRY(look(StringShape(), JsonType::kString));
  KV_TRY(look(ArrayShape(), JsonType::kArray));
  KV_TRY(look(ObjectShape(), JsonType::kObject));
  --depth_;
  outside.swap(active_);
  empty_.emplace(demand, empty);
  return empty;
}

template <typename Shape>
Result<std::vector<Shape>> SchemaShapes::Cross(const std::vector<Shape>& a,
                                               const std::vector<Shape>& b) {
  std::vector<Shape> both;
  for (const Shape& x : a) {
    for (const Shape& y : b) {
      KV_TRY(Shape shape, Intersect(x, y));
      KV_TRY(const bool empty, IsEmpty(shape));
      if (!empty) both.push_back(std::move(shape));
      if (both.size() > kMaxAlternatives) return TooMany("");
    }
  }
  return both;
}

template <typename Shape>
Result<std::vector<Shape>> SchemaShapes::OfListed(const ListedValues& listed, JsonType type,
                                                  bool negated) {
  std::vector<Shape> shapes;
  if constexpr (std::is_same_v<Shape, PlainShape>) {
    if (((listed.plain & TypeBit(type)) != 0) != negated) shapes.emplace_back();
  } else if constexpr (std::is_same_v<Shape, NumberSet>) {
    if (!negated) {
      for (const Decimal& number : listed.numbers) {
        NumberSet& set = shapes.emplace_back();
        set.min = set.max = NumberBound{number, false};
      }
      return shapes;
    }
    // What lies between the numbers.
    std::vector<Decimal> sorted = listed.numbers;
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a < b; });
    NumberSet gap;
    for (const Decimal& number : sorted) {
      gap.max = NumberBound{number, true};
      shapes.push_back(gap);
      gap.min = NumberBound{number, true};
    }
    gap.max.reset();
    shapes.push_back(gap);
  } else if constexpr (std::is_same_v<Shape, StringShape>) {
    if (listed.strings.empty() && !negated) return shapes;
    const auto strings = std::make_shared<CharDfa>(DfaOfNames(listed.strings, 0));
    for (CharDfa::State& state : strings->states) state.label = state.label != 0 ? 1 : 0;
    shapes.emplace_back();
    if (!listed.strings.empty()) shapes.back().parts = {{strings, !negated}};
  } else {
    if (negated) shapes.emplace_back();
    for (const SchemaId other : listed.others) {
      KV_TRY(auto more, OfLiteral<Shape>(negated ? Negative(other) : Positive(other), type));
      if (negated) {
        KV_TRY(shapes, Cross(shapes, more));
      } else {
        Append(std::move(more), shapes);
      }
    }
  }
  return shapes;
}

// One of the choices and none of the others; of these only those count that share a value with it.
template <typename Shape>
Result<std::vector<Shape>> SchemaShapes::OfOneOf(const std::vector<SchemaId>& choices,
                                                 JsonType type) {
  std::vector<std::vector<Shape>> each;
  for (const SchemaId choice : choices) {
    KV_TRY(auto shapes, OfLiteral<Shape>(Positive(choice), type));
    each.push_back(std::move(shapes));
  }
  std::vector<Shape> all;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    std::vector<Shape> one = each[i];
    for (std::size_t j = 0; j < choices.size() && !one.empty(); ++j) {
      if (i == j) continue;
      KV_TRY(const auto shared, Cross(one, each[j]));
      if (shared.empty()) continue;
      KV_TRY(const auto not_j, OfLiteral<Shape>(Negative(choices[j]), type));
      KV_TRY(one, Cross(one, not_j));
    }
    Append(std::move(one), all);
  }
  return all;
}

template <typename Shape>
Result<std::vector<Shape>> SchemaShapes::OfSchema(const Schema& schema, JsonType type) {
  if ((schema.types & TypeBit(type)) == 0) return std::vector<Shape>();
  KV_TRY(auto shapes, Own<Shape>(schema));
  std::erase_if(shapes, [&](const Shape& shape) {
    const auto empty = IsEmpty(shape);
    return empty && empty.value();
  });
  const auto cross = [&](const Result<std::vector<Shape>>& more) -> Result<void> {
    if (!more) return more.error();
    KV_TRY(shapes, Cross(shapes, more.value()));
    return base::Success();
  };
  for (const ListedValues& listed : schema.listed) {
    KV_TRY(cross(OfListed<Shape>(listed, type, /*negated=*/false)));
  }
  for (const SchemaId part : schema.all_of) {
    KV_TRY(cross(OfLiteral<Shape>(Positive(part), type)));
  }
  for (const SchemaId part : schema.none_of) {
    KV_TRY(cross(OfLiteral<Shape>(Negative(part), type)));
  }
  for (const auto& choices : schema.any_of) {
    std::vector<Shape> any;
    for (const SchemaId choice : choices) {
      KV_TRY(auto more, OfLiteral<Shape>(Positive(choice), type));
      Append(std::move(more), any);
    }
    KV_TRY(cross(any));
  }
  if (!schema.one_of.empty()) {
    KV_TRY(cross(OfOneOf<Shape>(schema.one_of, type)));
  }
  return shapes;
}

template <typename Shape>
Result<std::vector<Shape>> SchemaShapes::OfNegation(const Schema& schema, JsonType type) {
  if ((schema.types & TypeBit(type)) == 0) return std::vector<Shape>(1);
  KV_TRY(auto shapes, OwnNegated<Shape>(schema));
  const auto add = [&](Result<std::vector<Shape>> more) -> Result<void> {
    if (!more) return more.error();
    Append(std::move(more).value(), shapes);
    return base::Success();
  };
  for (const ListedValues& listed : schema.listed) {
    KV_TRY(add(OfListed<Shape>(listed, type, /*negated=*/true)));
  }
  for (const SchemaId part : schema.all_of) {
    KV_TRY(add(OfLiteral<Shape>(Negative(part), type)));
  }
  for (const SchemaId part : schema.none_of) {
    KV_TRY(add(OfLiteral<Shape>(Positive(part), type)));
  }
  const auto none_of = [&](const std::vector<SchemaId>& choices) -> Result<std::vector<Shape>> {
    std::vector<Shape> none(1);
    for (const SchemaId choice : choices) {
      KV_TRY(const auto more, OfLiteral<Shape>(Negative(choice), type));
      KV_TRY(none, Cross(none, more));
    }
    return none;
  };
  for (const auto& choices : schema.any_of) {
    KV_TRY(add(none_of(choices)));
  }
  if (!schema.one_of.empty()) {
    KV_TRY(add(none_of(schema.one_of)));
    for (std::size_t i = 0; i < schema.one_of.size(); ++i) {
      for (std::size_t j = i + 1; j < schema.one_of.size(); ++j) {
        KV_TRY(const auto a, OfLiteral<Shape>(Positive(schema.one_of[i]), type));
        KV_TRY(const auto b, OfLiteral<Shape>(Positive(schema.one_of[j]), type));
        KV_TRY(add(Cross(a, b)));
      }
    }
  }
  return shapes;
}

template <typename Shape>
Result<std::vector<Shape>> SchemaShapes::OfLiteral(Literal literal, JsonType type) {
  const Schema& schema = schemas_[literal / 2];
  if (!active_.insert(literal).second) {
    return MakeError(ErrorCode::kUsage,
                     "schema, at '{}': it refers to itself without a value in between",
                     schema.place);
  }
  auto shapes = literal % 2 == 0 ? OfSchema<Shape>(schema, type) : OfNegation<Shape>(schema, type);
  active_.erase(literal);
  if (shapes && shapes.value().size() > kMaxAlternatives) return TooMany(schema.place);
  return shapes;
}

template <typename Shape>
Result<std::vector<Shape>> SchemaShapes::Of(const Demand& demand, JsonType type) {
  std::vector<Shape> shapes(1);
  for (const Literal literal : demand) {
    KV_TRY(const auto more, OfLiteral<Shape>(literal, type));
    if (demand.size() == 1) return more;
    KV_TRY(shapes, Cross(shapes, more));
  }
  return shapes;
}

template Result<std::vector<PlainShape>> SchemaShapes::Of(const Demand&, JsonType);
template Result<std::vector<NumberSet>> SchemaShapes::Of(const Demand&, JsonType);
template Result<std::vector<StringShape>> SchemaShapes::Of(const Demand&, JsonType);
template Result<std::vector<ArrayShape>> SchemaShapes::Of(const Demand&, JsonType);
template Result<std::vector<ObjectShape>> SchemaShapes::Of(const Demand&, JsonType);

}  // namespace kvasir::constraints
