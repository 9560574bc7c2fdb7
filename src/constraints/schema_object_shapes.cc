// The shapes of objects: which members may come, and what each must be.
#include <algorithm>

#include "base/check.h"
#include "constraints/schema_shapes.h"

namespace kvasir::constraints {

using base::Result;

bool Selects(const NameSelector& selector, const std::string& name) {
  switch (selector.kind) {
    case NameSelector::Kind::kName:
      return selector.name == name;
    case NameSelector::Kind::kDfa:
      return (selector.dfa->LabelOf(name) != 0) == selector.inside;
    case NameSelector::Kind::kOthers:
      return !selector.known->names.contains(name) &&
             std::none_of(selector.known->patterns.begin(), selector.known->patterns.end(),
                          [&](const SharedDfa& dfa) { return dfa->LabelOf(name) != 0; });
  }
  KV_CHECK(false);
}

Demand DemandOf(const ObjectShape& shape, const std::string& name) {
  Demand demand;
  for (const auto& [selector, part] : shape.members) {
    if (Selects(selector, name)) demand.insert(demand.end(), part.begin(), part.end());
  }
  return Normalized(std::move(demand));
}

// The names that a schema of propertyNames allows.
Result<NameSelector> SchemaShapes::NamesOf(SchemaId schema) {
  KV_TRY(const auto shapes, Of<StringShape>(Normalized({Positive(schema)}), JsonType::kString));
  std::vector<SharedDfa> dfas;
  std::vector<const CharDfa*> parts;
  for (const StringShape& shape : shapes) {
    KV_TRY(auto dfa, StringsOf(shape));
    dfas.push_back(std::move(dfa));
    parts.push_back(dfas.back().get());
  }
  KV_TRY(CharDfa any, ProductDfa(parts, [](std::span<const std::uint32_t> labels) {
           return std::any_of(labels.begin(), labels.end(), [](auto l) { return l != 0; }) ? 1u
                                                                                           : 0u;
         }));
  NameSelector selector;
  selector.kind = NameSelector::Kind::kDfa;
  selector.dfa = std::make_shared<const CharDfa>(std::move(any));
  return selector;
}

namespace {

NameSelector Named(const std::string& name) {
  NameSelector selector;
  selector.name = name;
  return selector;
}
NameSelector Matching(const SharedDfa& dfa) {
  NameSelector selector;
  selector.kind = NameSelector::Kind::kDfa;
  selector.dfa = dfa;
  return selector;
}
NameSelector OthersThan(const Schema& schema) {
  auto known = std::make_shared<NameSelector::Known>();
  for (const auto& [name, id] : schema.properties) known->names.insert(name);
  for (const auto& [dfa, id] : schema.pattern_properties) known->patterns.push_back(dfa);
  NameSelector selector;
  selector.kind = NameSelector::Kind::kOthers;
  selector.known = std::move(known);
  return selector;
}

}  // namespace

template <>
Result<std::vector<ObjectShape>> SchemaShapes::Own(const Schema& schema) {
  ObjectShape shape;
  for (const auto& [name, id] : schema.properties) {
    shape.members.push_back({Named(name), Normalized({Positive(id)})});
  }
  for (const auto& [dfa, id] : schema.pattern_properties) {
    shape.members.push_back({Matching(dfa), Normalized({Positive(id)})});
  }
  if (schema.additional != kTrueSchema) {
    shape.members.push_back({OthersThan(schema), Normalized({Positive(schema.additional)})});
  }
  for (const SchemaId id : schema.property_names) {
    KV_TRY(NameSelector others, NamesOf(id));
    others.inside = false;
    shape.members.push_back({std::move(others), kImpossible});
  }
  shape.required.insert(schema.required.begin(), schema.required.end());
  shape.min = schema.min_properties;
  shape.max = schema.max_properties;
  return std::vector<ObjectShape>{shape};
}
template <>
Result<std::vector<ObjectShape>> SchemaShapes::OwnNegated(const Schema& schema) {
  std::vector<ObjectShape> choices;
  for (const auto& [name, id] : schema.properties) {
    if (id == kTrueSchema) continue;
    ObjectShape& shape = choices.emplace_back();
    shape.required = {name};
    shape.members = {{Named(name), Normalized({Negative(id)})}};
  }
  for (const auto& [dfa, id] : schema.pattern_properties) {
    if (id == kTrueSchema) continue;
    choices.emplace_back().some = {{Matching(dfa), Normalized({Negative(id)})}};
  }
  if (schema.additional != kTrueSchema) {
    choices.emplace_back().some = {{OthersThan(schema), Normalized({Negative(schema.additional)})}};
  }
  for (const SchemaId id : schema.property_names) {
    KV_TRY(NameSelector others, NamesOf(id));
    others.inside = false;
    choices.emplace_back().some = {{std::move(others), {}}};
  }
  for (const std::string& name : schema.required) {
    choices.emplace_back().members = {{Named(name), kImpossible}};
  }
  if (schema.min_properties > 0) choices.emplace_back().max = schema.min_properties - 1;
  if (schema.max_properties != kNoMaximum) choices.emplace_back().min = schema.max_properties + 1;
  return choices;
}
Result<ObjectShape> SchemaShapes::Intersect(const ObjectShape& a, const ObjectShape& b) {
  ObjectShape both = a;
  both.members.insert(both.members.end(), b.members.begin(), b.members.end());
  both.some.insert(both.some.end(), b.some.begin(), b.some.end());
  both.required.insert(b.required.begin(), b.required.end());
  both.min = std::max(a.min, b.min);
  both.max = std::min(a.max, b.max);
  return both;
}
Result<bool> SchemaShapes::IsEmpty(const ObjectShape& shape) {
  if (shape.min > shape.max || shape.required.size() > shape.max) return true;
  for (const std::string& name : shape.required) {
    KV_TRY(const bool none, IsEmpty(DemandOf(shape, name)));
    if (none) return true;
  }
  return false;
}

}  // namespace kvasir::constraints
