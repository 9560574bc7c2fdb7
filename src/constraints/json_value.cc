#include "constraints/json_value.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "base/utf8.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;

// Receives the parser's events. Every function returns whether to go on.
class TreeBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TreeBuilder(std::string_view what) : what_(what) {}

  bool null() override { return Add({JsonValue::Kind::kNull, {}, {}, {}}); }
  bool boolean(bool value) override {
    return Add({value ? JsonValue::Kind::kTrue : JsonValue::Kind::kFalse, {}, {}, {}});
  }
  bool number_integer(number_integer_t value) override { return AddNumber(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    return AddNumber(std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override { return AddNumber(text); }
  bool string(string_t& text) override {
    return Add({JsonValue::Kind::kString, std::move(text), {}, {}});
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(JsonValue::Kind::kObject); }
  bool start_array(std::size_t) override { return Open(JsonValue::Kind::kArray); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    if (!names_.back().insert(name).second) {
      error_ = MakeError(ErrorCode::kUsage, "{}: an object has two members '{}'", what_, name);
      return false;
    }
    open_.back().members.emplace_back(std::move(name), JsonValue());
    return true;
  }
  bool parse_error(std::size_t place, const std::string& token,
                   const nlohmann::detail::exception&) override {
    error_ = MakeError(ErrorCode::kUsage, "{}, at byte {}: this is not JSON: '{}'", what_, place,
                       base::ReplaceInvalidUtf8(token));
    return false;
  }

  base::Result<JsonValue> Take(bool done) {
    if (error_) return *error_;
    if (!done) return MakeError(ErrorCode::kUsage, "{}: this is not JSON", what_);
    return std::move(root_);
  }

 private:
  bool AddNumber(std::string text) {
    return Add({JsonValue::Kind::kNumber, std::move(text), {}, {}});
  }
  bool Add(JsonValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_array()) {
      open_.back().items.push_back(std::move(value));
    } else {
      open_.back().members.back().second = std::move(value);
    }
    return true;
  }
  bool Open(JsonValue::Kind kind) {
    if (open_.size() == kMaxJsonDepth) {
      error_ = MakeError(ErrorCode::kUsage, "{}: it is nested more than {} deep, the limit", what_,
                         kMaxJsonDepth);
      return false;
    }
    open_.push_back({kind, {}, {}, {}});
    names_.emplace_back();
    return true;
  }
  bool Close() {
    JsonValue value = std::move(open_.back());
    open_.pop_back();
    names_.pop_back();
    return Add(std::move(value));
  }

  std::string_view what_;
  std::vector<JsonValue> open_;
  std::vector<std::set<std::string>> names_;  // Of the members of each that is open.
  JsonValue root_;
  std::optional<base::Error> error_;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view name) const {
  const auto member =
      std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == name; });
  return member == members.end() ? nullptr : &member->second;
}

base::Result<JsonValue> ParseJson(std::string_view what, std::string_view text) {
  TreeBuilder builder(what);
  const bool done = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.Take(done);
}

}  // namespace kvasir::constraints
