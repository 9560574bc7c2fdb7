// Reads JSON files: untrusted text in, a tree of values out.
//
// Source: RFC 8259, read by nlohmann's parser. Beyond it, an object must not have two members of
// one name: of two values one would win without a sign.
#ifndef KVASIR_FORMATS_JSON_DOCUMENT_H_
#define KVASIR_FORMATS_JSON_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"

namespace kvasir::formats {

inline constexpr std::size_t kMaxJsonFileDepth = 64;
inline constexpr std::size_t kMaxJsonFileBytes = std::size_t{1} << 30;

enum class JsonKind : std::uint8_t {
  kNull,
  kBool,
  kUint,   // A whole number >= 0 below 2^64.
  kInt,    // A whole number < 0, at least -2^63.
  kFloat,  // Any other number that fits a double.
  kString,
  kArray,
  kObject,
};

class JsonItems;

// One value of a document: a view, valid as long as the document. Cheap to copy. Thread-safe.
class JsonNode {
 public:
  JsonKind kind() const;
  bool is_null() const { return kind() == JsonKind::kNull; }
  bool is_string() const { return kind() == JsonKind::kString; }
  bool is_array() const { return kind() == JsonKind::kArray; }
  bool is_object() const { return kind() == JsonKind::kObject; }

  // The value as this type, or nothing if it is of another kind.
  std::optional<bool> AsBool() const;
  std::optional<std::uint64_t> AsUint() const;
  std::optional<double> AsDouble() const;  // Any number.
  std::optional<std::string_view> AsString() const;

  // Of an array its elements, of an object its members, in order; of any other none.
  JsonItems items() const;
  // An object's member, or nothing if there is none. Time linear in the members.
  std::optional<JsonNode> Find(std::string_view key) const;

  // On one line, for messages: 12 · 'gelu' · null · an object.
  std::string Text() const;

 private:
  friend class JsonBuilder;
  friend class JsonDocument;
  friend class JsonItems;
  struct Slot {
    union {
      std::uint64_t number;  // Of kInt and kFloat its bits.
      struct {
        std::uint32_t offset, bytes;  // Of a string, in text_.
      } text;
    };
    std::uint32_t end;  // The slot behind this value and all in it.
    JsonKind kind;
  };
  static_assert(sizeof(std::uint64_t) == 8);
  JsonNode(const Slot* slots, const char* text, std::size_t at)
      : slots_(slots), text_(text), at_(at) {}
  const Slot& slot() const { return slots_[at_]; }

  const Slot* slots_;
  const char* text_;
  std::size_t at_;
};

struct JsonItem {
  std::string_view key;  // Of an object's member; else empty.
  JsonNode value;
};

// A range for `for`.
class JsonItems {
 public:
  class Iterator {
   public:
    JsonItem operator*() const;
    Iterator& operator++();
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    friend class JsonItems;
    Iterator(const JsonNode& parent, std::size_t at) : parent_(parent), at_(at) {}
    JsonNode parent_;
    std::size_t at_;
  };
  Iterator begin() const;
  Iterator end() const;

 private:
  friend class JsonNode;
  explicit JsonItems(const JsonNode& parent) : parent_(parent) {}
  JsonNode parent_;
};

// Owns what it read; movable, and nodes stay valid then. Immutable, so thread-safe. Memory is at
// most 16 times the text's bytes and the text again: one slot of 16 bytes a value or name, and no
// value takes less than two bytes.
class JsonDocument {
 public:
  // kIo if the file cannot be read; kBadData (naming file and byte) if it is not JSON, has an
  // object with two members of one name, is nested too deep or too long.
  static base::Result<JsonDocument> Open(base::Env& env, const std::string& path);
  // The same from text; `name` stands in messages.
  static base::Result<JsonDocument> Parse(std::string_view text, std::string name);

  const std::string& name() const { return name_; }
  JsonNode root() const { return {slots_.data(), text_.data(), 0}; }

 private:
  friend class JsonBuilder;
  using Slot = JsonNode::Slot;
  JsonDocument() = default;

  std::string name_;
  std::vector<Slot> slots_;
  std::vector<char> text_;  // Of all strings. A vector: its characters stay in place when it moves.
};

// Appends text as a JSON string, with its quotes. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string& out);

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_JSON_DOCUMENT_H_
