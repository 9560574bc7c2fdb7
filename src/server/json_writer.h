// JsonWriter: JSON text, written in order.
#ifndef KVASIR_SERVER_JSON_WRITER_H_
#define KVASIR_SERVER_JSON_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace kvasir::server {

// Appends the text as a JSON string (RFC 8259), quotes included. What is not UTF-8 becomes U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

// A value after the other, commas set by itself. The same calls give the same bytes. Requires that
// what is opened is closed, at most 64 deep, and that a value in an object follows its Key.
// Allocates nothing but the text's own room. Single-threaded.
class JsonWriter {
 public:
  JsonWriter() : out_(own_) {}
  // Appends to a text of the caller's, which must outlive the writer; Take is not for such a one.
  explicit JsonWriter(std::string& out) : out_(out) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view name);
  JsonWriter& String(std::string_view text);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Uint(std::uint64_t value);
  JsonWriter& Double(double value);        // Shortest that reads back; null if not finite.
  JsonWriter& Raw(std::string_view json);  // A value that is written already.

  // A member: Key and value.
  JsonWriter& Member(std::string_view name, std::string_view text) {
    return Key(name).String(text);
  }
  JsonWriter& Member(std::string_view name, const char* text) { return Key(name).String(text); }
  JsonWriter& Member(std::string_view name, bool value) { return Key(name).Bool(value); }
  JsonWriter& Member(std::string_view name, std::uint64_t value) { return Key(name).Uint(value); }
  JsonWriter& Member(std::string_view name, double value) { return Key(name).Double(value); }

  std::string Take() { return std::move(own_); }

 private:
  void BeforeValue();
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);

  static constexpr int kMostOpen = 64;

  std::string own_;
  std::string& out_;
  int open_ = 0;                   // Arrays and objects that are open, each inside the one before:
  std::uint64_t has_members_ = 0;  // of the i-th, in bit i, whether it has a member.
  bool after_key_ = false;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_JSON_WRITER_H_
