// Shapes: what a schema means for values of one type, as alternatives without negations.
#ifndef KVASIR_CONSTRAINTS_SCHEMA_SHAPES_H_
#define KVASIR_CONSTRAINTS_SCHEMA_SHAPES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "constraints/schema.h"

namespace kvasir::constraints {

// A schema or its negation: 2 · id, or 2 · id + 1.
using Literal = std::uint32_t;
constexpr Literal Positive(SchemaId id) { return 2 * id; }
constexpr Literal Negative(SchemaId id) { return 2 * id + 1; }

// A value must satisfy all of these. Ascending, each once; what always holds is left out, and what
// cannot hold is {Positive(kFalseSchema)} alone.
using Demand = std::vector<Literal>;
Demand Normalized(Demand demand);
Demand Both(const Demand& a, const Demand& b);
inline const Demand kImpossible = {Positive(kFalseSchema)};

// The limit of the alternatives that one type of a demand may have.
inline constexpr std::size_t kMaxAlternatives = 2'000;

struct PlainShape {};  // null, false or true: it may be.

struct StringShape {
  std::vector<std::pair<SharedDfa, bool>> parts;  // In it (true), or not in it.
  std::uint64_t min = 0, max = kNoMaximum;        // Characters.
};

struct ArrayShape {
  std::vector<Demand> prefix;
  Demand rest;
  std::uint64_t min = 0, max = kNoMaximum;  // Items.
  // Some item, from this index on, satisfies the demand.
  std::vector<std::pair<std::size_t, Demand>> some;
};

// Which member names something concerns.
struct NameSelector {
  enum class Kind { kName, kDfa, kOthers };
  struct Known {
    std::set<std::string> names;
    std::vector<SharedDfa> patterns;
  };
  Kind kind = Kind::kName;
  std::string name;
  SharedDfa dfa;
  bool inside = true;                  // Names in the automaton; else those not in it.
  std::shared_ptr<const Known> known;  // The names that are not among these.
};

struct ObjectShape {
  std::vector<std::pair<NameSelector, Demand>> members;  // Every member so named satisfies it.
  std::vector<std::pair<NameSelector, Demand>> some;     // Some member so named satisfies it.
  std::set<std::string> required;
  std::uint64_t min = 0, max = kNoMaximum;  // Members.
};

bool Selects(const NameSelector& selector, const std::string& name);
// What the members' demands say of a member of that name.
Demand DemandOf(const ObjectShape& shape, const std::string& name);

// Borrows the schemas. Single-threaded.
class SchemaShapes {
 public:
  explicit SchemaShapes(const SchemaSet& schemas) : schemas_(schemas.schemas) {}

  // The alternatives that a demand leaves to values of a type; none if it allows no such value.
  // Shape must be the type's. An alternative may still turn out to hold nothing. Errors are kUsage:
  // too many alternatives, a schema that refers to itself without a value in between, and what
  // cannot be expressed exactly.
  template <typename Shape>
  base::Result<std::vector<Shape>> Of(const Demand& demand, JsonType type);

  // The strings of a shape, labelled 1.
  base::Result<SharedDfa> StringsOf(const StringShape& shape);

 private:
  template <typename Shape>
  using Shapes = base::Result<std::vector<Shape>>;

  template <typename Shape>
  Shapes<Shape> OfLiteral(Literal literal, JsonType type);
  template <typename Shape>
  Shapes<Shape> OfSchema(const Schema& schema, JsonType type);
  template <typename Shape>
  Shapes<Shape> OfNegation(const Schema& schema, JsonType type);
  template <typename Shape>
  Shapes<Shape> OfOneOf(const std::vector<SchemaId>& choices, JsonType type);
  template <typename Shape>
  Shapes<Shape> OfListed(const ListedValues& listed, JsonType type, bool negated);
  template <typename Shape>
  Shapes<Shape> Own(const Schema& schema);
  template <typename Shape>
  Shapes<Shape> OwnNegated(const Schema& schema);
  template <typename Shape>
  Shapes<Shape> Cross(const std::vector<Shape>& a, const std::vector<Shape>& b);

  base::Result<PlainShape> Intersect(const PlainShape& a, const PlainShape& b);
  base::Result<NumberSet> Intersect(const NumberSet& a, const NumberSet& b);
  base::Result<StringShape> Intersect(const StringShape& a, const StringShape& b);
  base::Result<ArrayShape> Intersect(const ArrayShape& a, const ArrayShape& b);
  base::Result<ObjectShape> Intersect(const ObjectShape& a, const ObjectShape& b);
  // Whether it is seen at once that a shape holds nothing.
  base::Result<bool> IsEmpty(const PlainShape& shape);
  base::Result<bool> IsEmpty(const NumberSet& shape);
  base::Result<bool> IsEmpty(const StringShape& shape);
  base::Result<bool> IsEmpty(const ArrayShape& shape);
  base::Result<bool> IsEmpty(const ObjectShape& shape);
  base::Result<bool> IsEmpty(const Demand& demand);
  base::Result<NameSelector> NamesOf(SchemaId schema);

  const std::vector<Schema>& schemas_;
  std::set<Literal> active_;  // Being looked at, for the same value.
  int depth_ = 0;             // Of values inside values that are looked at.
  std::map<Demand, bool> empty_;
  std::map<std::pair<std::vector<std::pair<const CharDfa*, bool>>,
                     std::pair<std::uint64_t, std::uint64_t>>,
           std::pair<SharedDfa, std::vector<std::pair<SharedDfa, bool>>>>
      strings_;  // With what keeps the parts alive.
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_SCHEMA_SHAPES_H_
