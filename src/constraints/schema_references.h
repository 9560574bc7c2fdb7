// Where $ref leads: the resources and anchors of one JSON Schema document.
#ifndef KVASIR_CONSTRAINTS_SCHEMA_REFERENCES_H_
#define KVASIR_CONSTRAINTS_SCHEMA_REFERENCES_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "base/result.h"
#include "constraints/json_value.h"

namespace kvasir::constraints {

// Borrows the document. Knows of every value in it, except inside enum and const: which schema
// resource it is part of (the nearest $id above it), and its place.
class SchemaReferences {
 public:
  explicit SchemaReferences(const JsonValue& document);

  // The value that a reference in `from` names: a JSON pointer, an anchor or an $id, of this
  // document. kUsage naming the reference for what is not there: nothing is fetched.
  base::Result<const JsonValue*> Resolve(const JsonValue& from, std::string_view reference) const;

  // JSON pointer from the document's root; "" for the root. Requires a value of the document.
  const std::string& PlaceOf(const JsonValue& value) const { return infos_.at(&value).place; }

 private:
  struct Info {
    std::size_t resource = 0;
    std::string place;
  };
  struct Resource {
    std::string uri;  // Without fragment; "" if the document gives none.
    const JsonValue* root = nullptr;
    std::map<std::string, const JsonValue*, std::less<>> anchors;
  };
  enum class Role { kSchema, kNamedSchemas, kOther };
  static Role RoleOf(std::string_view keyword);
  void Walk(const JsonValue& value, std::size_t resource, std::string place, Role role);
  const JsonValue* FollowPointer(const Resource& resource, std::string_view pointer) const;

  std::vector<Resource> resources_;
  boost::unordered_flat_map<const JsonValue*, Info> infos_;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_SCHEMA_REFERENCES_H_
