#include "constraints/schema_references.h"

#include <algorithm>
#include <set>

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;

// A URI reference against a base (RFC 3986 §5), without dot segments.
std::string ResolveUri(std::string_view base, std::string_view reference) {
  const std::size_t colon = reference.find(':');
  if (reference.empty()) return std::string(base);
  if (colon != std::string_view::npos && reference.find('/') > colon) {
    return std::string(reference);
  }
  const std::size_t scheme = base.find("://");
  const std::size_t path = scheme == std::string_view::npos ? 0 : base.find('/', scheme + 3);
  if (reference.starts_with('/')) return std::string(base.substr(0, path)).append(reference);
  const std::size_t last = base.rfind('/');
  if (last == std::string_view::npos || path == std::string_view::npos) {
    return std::string(path == std::string_view::npos ? base : "")
        .append(path == std::string_view::npos ? "/" : "")
        .append(reference);
  }
  return std::string(base.substr(0, last + 1)).append(reference);
}

std::string PercentDecoded(std::string_view text) {
  const auto hex = [](char c) {
    const char lower = static_cast<char>(c | 0x20);
    return c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      decoded += static_cast<char>(hex(text[i + 1]) << 4 | hex(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// One step of a JSON pointer (RFC 6901): ~1 is / and ~0 is ~.
std::string PointerToken(std::string_view text) {
  std::string token;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '~' && i + 1 < text.size() && (text[i + 1] == '0' || text[i + 1] == '1')) {
      token += text[++i] == '0' ? '~' : '/';
    } else {
      token += text[i];
    }
  }
  return token;
}

std::string EscapedToken(std::string_view name) {
  std::string token;
  for (const char c : name) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

}  // namespace

// What the value of a keyword is: a schema or an array of them, an object of schemas by names that
// the author chose, or something in which an "$id" means nothing.
SchemaReferences::Role SchemaReferences::RoleOf(std::string_view keyword) {
  static const std::set<std::string_view> named = {
      "$defs",     "definitions", "dependencies", "dependentSchemas", "patternProperties",
      "properties"};
  static const std::set<std::string_view> schemas = {"additionalItems",
                                                     "additionalProperties",
                                                     "allOf",
                                                     "anyOf",
                                                     "contains",
                                                     "else",
                                                     "if",
                                                     "items",
                                                     "not",
                                                     "oneOf",
                                                     "prefixItems",
                                                     "propertyNames",
                                                     "then",
                                                     "unevaluatedItems",
                                                     "unevaluatedProperties"};
  if (named.contains(keyword)) return Role::kNamedSchemas;
  return schemas.contains(keyword) ? Role::kSchema : Role::kOther;
}

SchemaReferences::SchemaReferences(const JsonValue& document) {
  resources_.push_back({"", &document, {}});
  Walk(document, 0, "", Role::kSchema);
}

void SchemaReferences::Walk(const JsonValue& value, std::size_t resource, std::string place,
                            Role role) {
  if (role == Role::kSchema && value.is_object()) {
    const JsonValue* id = value.Find("$id");
    if (id == nullptr) id = value.Find("id");  // As drafts up to 4 have it.
    if (id != nullptr && id->is_string() && !id->text.starts_with('#')) {
      const std::string uri =
          ResolveUri(resources_[resource].uri, id->text.substr(0, id->text.find('#')));
      if (resources_[resource].root == &value) {
        resources_[resource].uri = uri;
      } else {
        resource = resources_.size();
        resources_.push_back({uri, &value, {}});
      }
    } else if (id != nullptr && id->is_string()) {
      resources_[resource].anchors.emplace(id->text.substr(1), &value);  // As up to draft 7.
    }
    for (const char* keyword : {"$anchor", "$dynamicAnchor"}) {
      const JsonValue* anchor = value.Find(keyword);
      if (anchor != nullptr && anchor->is_string()) {
        resources_[resource].anchors.emplace(anchor->text, &value);
      }
    }
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    Walk(value.items[i], resource, place + "/" + std::to_string(i), role);
  }
  for (const auto& [name, member] : value.members) {
    if (role == Role::kSchema && (name == "enum" || name == "const")) continue;
    const Role inner = role == Role::kSchema         ? RoleOf(name)
                       : role == Role::kNamedSchemas ? Role::kSchema
                                                     : Role::kOther;
    Walk(member, resource, place + "/" + EscapedToken(name), inner);
  }
  infos_[&value] = {resource, std::move(place)};
}

const JsonValue* SchemaReferences::FollowPointer(const Resource& resource,
                                                 std::string_view pointer) const {
  const JsonValue* value = resource.root;
  while (value != nullptr && !pointer.empty()) {
    pointer.remove_prefix(1);  // '/'
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string token = PointerToken(pointer.substr(0, end));
    pointer.remove_prefix(end);
    if (value->is_array()) {
      std::size_t index = 0;
      for (const char c : token) {
        if (c < '0' || c > '9' || index > value->items.size()) return nullptr;
        index = index * 10 + static_cast<std::size_t>(c - '0');
      }
      value = !token.empty() && index < value->items.size() ? &value->items[index] : nullptr;
    } else {
      value = value->Find(token);
    }
  }
  return value != nullptr && infos_.contains(value) ? value : nullptr;
}

base::Result<const JsonValue*> SchemaReferences::Resolve(const JsonValue& from,
                                                         std::string_view reference) const {
  const Info& info = infos_.at(&from);
  const std::size_t hash = std::min(reference.find('#'), reference.size());
  const std::string uri = ResolveUri(resources_[info.resource].uri, reference.substr(0, hash));
  const Resource* resource = hash == 0 ? &resources_[info.resource] : nullptr;
  for (std::size_t i = 0; resource == nullptr && i < resources_.size(); ++i) {
    if (resources_[i].uri == uri) resource = &resources_[i];
  }
  if (resource == nullptr) {
    return MakeError(ErrorCode::kUsage,
                     "schema, at '{}': the reference '{}' leads out of this document, and nothing "
                     "is fetched",
                     info.place, reference);
  }
  const std::string fragment =
      hash < reference.size() ? PercentDecoded(reference.substr(hash + 1)) : "";
  const JsonValue* target = nullptr;
  if (fragment.empty() || fragment.starts_with('/')) {
    target = FollowPointer(*resource, fragment);
  } else {
    const auto anchor = resource->anchors.find(fragment);
    if (anchor != resource->anchors.end()) target = anchor->second;
  }
  if (target == nullptr) {
    return MakeError(ErrorCode::kUsage, "schema, at '{}': the reference '{}' leads nowhere",
                     info.place, reference);
  }
  return target;
}

}  // namespace kvasir::constraints
