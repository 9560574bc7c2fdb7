// Nodes: the demands that a schema can make of the values in a document, laid out as plans that
// texts follow; and which of them any value satisfies.
#ifndef KVASIR_CONSTRAINTS_SCHEMA_NODES_H_
#define KVASIR_CONSTRAINTS_SCHEMA_NODES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "constraints/schema.h"
#include "constraints/schema_shapes.h"

namespace kvasir::constraints {

using NodeId = std::uint32_t;  // Also the number of the node's rule.

inline constexpr std::size_t kMaxSchemaNodes = 50'000;

// Bits of a plan's `some` demands that a value satisfies.
using SomeMask = std::uint32_t;
inline constexpr std::size_t kMaxSome = 4;

// What a value may be, and which `some` demands it then counts for.
struct ValueOption {
  NodeId node = 0;
  SomeMask satisfies = 0;
  bool usable = false;  // The node is inhabited.
};

struct ArrayPlan {
  // [steady + 1] by index; from `steady` on all are the same.
  std::vector<std::vector<ValueOption>> items;
  std::uint64_t min = 0, max = kNoMaximum;
  SomeMask some = 0;  // Must be satisfied in the end.
};

struct MemberClass {
  int name = -1;  // Index into the plan's names; -1: any of the other names of the class.
  std::vector<ValueOption> options;
};

struct ObjectPlan {
  std::vector<std::string> names;  // Those the schema knows.
  std::vector<bool> required;      // [names]
  std::vector<MemberClass> classes;
  std::vector<int> class_of_name;                 // [names]; -1: such a member is not allowed.
  CharDfa keys;                                   // Labels are classes, + 1.
  std::vector<std::vector<std::uint64_t>> reach;  // [states of keys] bits of classes
  std::uint64_t min = 0, max = kNoMaximum;
  SomeMask some = 0;
};

struct SchemaNode {
  Demand demand;
  TypeSet plain = 0;
  std::vector<NumberSet> numbers;
  std::vector<SharedDfa> strings;
  std::vector<ArrayPlan> arrays;
  std::vector<ObjectPlan> objects;
  bool inhabited = false;  // Some value satisfies the demand.
};

// Owns the nodes that can be reached from the root. Plans that no value follows are gone.
class SchemaNodes {
 public:
  // Errors are kUsage (SchemaShapes, limits).
  static base::Result<SchemaNodes> Make(const SchemaSet& schemas);

  const std::vector<SchemaNode>& nodes() const { return nodes_; }  // [rules]
  NodeId root() const { return 0; }

 private:
  explicit SchemaNodes(const SchemaSet& schemas) : shapes_(schemas) {}
  NodeId IdOf(const Demand& demand);
  base::Result<void> Fill(NodeId id);
  std::vector<ValueOption> Options(const Demand& demand,
                                   const std::vector<std::pair<SomeMask, Demand>>& some);
  base::Result<ArrayPlan> Plan(const ArrayShape& shape);
  base::Result<ObjectPlan> Plan(const ObjectShape& shape);
  base::Result<void> AddClasses(const ObjectShape& shape, ObjectPlan& plan);
  void FindInhabited();
  void UpdateOptions(SchemaNode& node) const;

  SchemaShapes shapes_;
  std::vector<SchemaNode> nodes_;
  std::map<Demand, NodeId> ids_;
};

// Whether an array of this plan can be finished by usable options, with `index` items read and
// `satisfied` so far. Used while inhabited nodes are found and while texts are read.
bool CanFinish(const ArrayPlan& plan, std::uint64_t index, SomeMask satisfied);

// What a text has used of an object's plan.
struct ObjectProgress {
  std::vector<std::uint64_t> seen;  // Bits of names.
  std::uint64_t count = 0;          // Members, counted as far as it matters.
  SomeMask satisfied = 0;
  friend auto operator<=>(const ObjectProgress&, const ObjectProgress&) = default;
};
ObjectProgress NoProgress(const ObjectPlan& plan);
bool MayClose(const ObjectPlan& plan, const ObjectProgress& progress);
bool CanFinish(const ObjectPlan& plan, const ObjectProgress& progress);
// After a member of a class with an option.
ObjectProgress After(const ObjectPlan& plan, const ObjectProgress& progress,
                     const MemberClass& member, const ValueOption& option);
// [bits of classes] Those that may come next, in some option. In time of the number of classes.
std::vector<std::uint64_t> MayCome(const ObjectPlan& plan, const ObjectProgress& progress);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_SCHEMA_NODES_H_
