#include "formats/npy.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "formats/byte_cursor.h"
#include "formats/printable.h"

namespace kvasir::formats {
namespace {

using base::Result;
using tensor::Shape;

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kHeaderAlignment = 64;  // The data begin at a multiple of it.
constexpr std::size_t kPrefixBytes = 10;      // Magic, version, length of the text (v1.0).

// "(24, 6915)", "(3,)", "()"
std::string TupleText(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  }
  return text + (shape.rank() == 1 ? ",)" : ")");
}

std::string HeaderText(const Shape& shape) {
  std::string text =
      "{'descr': '<f4', 'fortran_order': False, 'shape': " + TupleText(shape) + ", }";
  const std::size_t unpadded = kPrefixBytes + text.size() + 1;
  text.append((kHeaderAlignment - unpadded % kHeaderAlignment) % kHeaderAlignment, ' ');
  return text + '\n';
}

// Reads the header's Python dictionary: exactly the three keys, once each, in any order.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::uint64_t offset, std::string_view file)
      : text_(text), offset_(offset), file_(file) {}

  // The shape, if the rest says C order and '<f4'.
  Result<Shape> Parse() {
    KV_TRY(Expect('{'));
    while (!Accept('}')) {
      KV_TRY(const auto key, String());
      KV_TRY(Expect(':'));
      KV_TRY(Member(key));
      if (!Accept(',')) {
        KV_TRY(Expect('}'));
        break;
      }
    }
    SkipSpaces();
    if (at_ != text_.size()) return Fail("text follows the header's dictionary");
    if (!shape_ || !has_descr_ || !has_order_) {
      return Fail("the header must have 'descr', 'fortran_order' and 'shape'");
    }
    return *shape_;
  }

 private:
  base::Error Fail(std::string_view what) const {
    return BadFile(file_, offset_ + at_, "{}", what);
  }
  void SkipSpaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool Accept(char c) {
    SkipSpaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Result<void> Expect(char c) {
    if (!Accept(c)) return Fail(fmt::format("the header must have '{}' here", c));
    return base::Success();
  }
  bool AcceptWord(std::string_view word) {
    SkipSpaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Result<std::string_view> String() {
    SkipSpaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return Fail("the header must have a string here");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return Fail("a string of the header does not end");
    const std::string_view content = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return content;
  }

  Result<void> Member(std::string_view key) {
    if (key == "descr" && !std::exchange(has_descr_, true)) {
      KV_TRY(const auto descr, String());
      if (descr != "<f4") {
        return Fail(fmt::format("the elements are {}, read is '<f4' only", Quoted(descr)));
      }
      return base::Success();
    }
    if (key == "fortran_order" && !std::exchange(has_order_, true)) {
      if (AcceptWord("False")) return base::Success();
      return Fail("'fortran_order' must be False");
    }
    if (key == "shape" && !shape_) return Tuple();
    return Fail(
        fmt::format("the header has the key {}, allowed are 'descr', 'fortran_order' and "
                    "'shape', once each",
                    Quoted(key)));
  }

  Result<void> Tuple() {
    KV_TRY(Expect('('));
    std::array<std::uint64_t, Shape::kMaxRank> dims{};
    std::size_t rank = 0;
    while (!Accept(')')) {
      if (rank == Shape::kMaxRank) {
        return Fail(fmt::format("the shape has more than {} dimensions", Shape::kMaxRank));
      }
      KV_TRY(dims[rank++], Number());
      if (!Accept(',')) {
        // Python's (3) is a number, not a tuple.
        if (rank == 1) return Fail("the shape must be a tuple");
        KV_TRY(Expect(')'));
        break;
      }
    }
    shape_ = Shape(std::span<const std::uint64_t>(dims.data(), rank));
    return base::Success();
  }

  Result<std::uint64_t> Number() {
    SkipSpaces();
    std::optional<std::uint64_t> value;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = base::CheckedMul(value.value_or(0), 10);
      if (value) value = base::CheckedAdd(*value, static_cast<std::uint64_t>(text_[at_] - '0'));
      if (!value) return Fail("a dimension is 2^64 or more");
    }
    if (!value) return Fail("a dimension must be an integer >= 0");
    return *value;
  }

  std::string_view text_;
  std::uint64_t offset_;  // Of text_ in the file.
  std::string_view file_;
  std::size_t at_ = 0;
  bool has_descr_ = false;
  bool has_order_ = false;
  std::optional<Shape> shape_;
};

// Length of the header's text: two bytes in version 1.0, four in 2.0 and 3.0.
Result<std::uint32_t> ReadHeaderLength(ByteCursor& in) {
  KV_TRY(const auto major, in.Read<std::uint8_t>("version"));
  KV_TRY(const auto minor, in.Read<std::uint8_t>("version"));
  if (major < 1 || major > 3 || minor != 0) {
    return BadFile(in.file(), in.offset() - 2, ".npy version {}.{} is not one of 1.0, 2.0, 3.0",
                   major, minor);
  }
  if (major > 1) return in.Read<std::uint32_t>("header length");
  KV_TRY(const auto length, in.Read<std::uint16_t>("header length"));
  return std::uint32_t{length};
}

}  // namespace

Result<void> WriteNpyF32(base::Env& env, const std::string& path, const Shape& shape,
                         std::span<const float> values) {
  if (shape.ElementCount() != values.size()) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "cannot write '{}': shape {} was given {} values", path,
                           shape.ToString(), values.size());
  }
  const std::string text = HeaderText(shape);
  std::string bytes(kMagic);
  bytes += {'\1', '\0', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  bytes += text;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return base::WriteFileAtomic(env, path, bytes);
}

Result<NpyF32> ReadNpyF32(base::Env& env, const std::string& path) {
  KV_TRY(const auto file, env.Map(path));
  return ParseNpyF32(file->bytes(), path);
}

Result<NpyF32> ParseNpyF32(std::span<const std::byte> bytes, std::string_view name) {
  ByteCursor in(bytes, name);
  KV_TRY(const auto magic, in.Take(kMagic.size(), "the magic of a .npy file"));
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) {
    return BadFile(name, 0, "not a .npy file: it must begin with '\\x93NUMPY'");
  }
  KV_TRY(const auto length, ReadHeaderLength(in));
  const std::uint64_t at = in.offset();
  KV_TRY(const auto header, in.Take(length, "the header"));
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  NpyF32 array;
  KV_TRY(array.shape, HeaderParser(text, at, name).Parse());
  const auto elements = array.shape.ElementCount();
  const auto data_bytes = elements ? base::CheckedMul(*elements, sizeof(float)) : std::nullopt;
  if (data_bytes != in.left()) {
    return BadFile(name, in.offset(), "{} bytes of data follow, shape {} in '<f4' needs {}",
                   in.left(), array.shape.ToString(),
                   data_bytes ? std::to_string(*data_bytes) : "2^64 or more");
  }
  KV_TRY(const auto data, in.Take(*data_bytes, "the data"));
  array.values.resize(*elements);
  if (!data.empty()) std::memcpy(array.values.data(), data.data(), data.size());
  return array;
}

}  // namespace kvasir::formats
