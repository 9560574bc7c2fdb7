#include "cli/number_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/checked.h"
#include "base/utf8.h"
#include "cli/json_output.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

// What was typed, fit for one line of a message.
std::string Shown(std::string_view text) { return OneLine(base::ReplaceInvalidUtf8(text)); }

std::string Allowed(const FloatRange& range) {
  const char* from = range.min_open ? "above " : "from ";
  if (range.max >= std::numeric_limits<float>::max()) {
    return fmt::format("a finite number {}", range.min_open
                                                 ? fmt::format("above {}", range.min)
                                                 : fmt::format("of at least {}", range.min));
  }
  return fmt::format("a number {}{} to {}", from, range.min, range.max);
}

template <typename Value, typename Parse>
CLI::Option* AddParsed(CLI::App* command, const std::string& flags, Value& value, Parse parse,
                       const std::string& help) {
  const std::string name = flags.substr(flags.rfind(',') + 1);
  return command
      ->add_option_function<std::string>(
          flags,
          [&value, name, parse](const std::string& text) {
            const auto parsed = parse(name, text);
            if (!parsed) throw CLI::ValidationError(parsed.error().message);
            value = static_cast<Value>(parsed.value());
          },
          help)
      ->allow_extra_args(false)
      ->type_name("N");
}

}  // namespace

base::Result<std::uint64_t> ParseUint(std::string_view what, std::string_view text,
                                      UintRange range) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < range.min ||
      value > range.max) {
    return MakeError(ErrorCode::kUsage, "{} is '{}': it must be a whole number from {} to {}", what,
                     Shown(text), range.min, range.max);
  }
  return value;
}

base::Result<std::uint64_t> ParseBytes(std::string_view what, std::string_view text,
                                       UintRange range) {
  struct Suffix {
    std::string_view name;
    std::uint64_t factor;
  };
  static constexpr Suffix kSuffixes[] = {
      {"", 1},
      {"KiB", std::uint64_t{1} << 10},
      {"MiB", std::uint64_t{1} << 20},
      {"GiB", std::uint64_t{1} << 30},
      {"TiB", std::uint64_t{1} << 40},
      {"kB", 1'000},
      {"MB", 1'000'000},
      {"GB", 1'000'000'000},
      {"TB", 1'000'000'000'000},
  };
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Suffix& known : kSuffixes) {
    if (error != std::errc() || suffix != known.name) continue;
    const auto bytes = base::CheckedMul(count, known.factor);
    if (bytes && *bytes >= range.min && *bytes <= range.max) return *bytes;
  }
  return MakeError(
      ErrorCode::kUsage,
      "{} is '{}': it must be a number of bytes from {} to {}, as 1048576, 1MiB or 1MB", what,
      Shown(text), range.min, range.max);
}

base::Result<double> ParseFloat(std::string_view what, std::string_view text, FloatRange range) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = !text.empty() && end == text.data() + text.size();
  // Out of range is too large or too small; only its exponent tells which.
  const bool underflow =
      error == std::errc::result_out_of_range && text.find("e-") != std::string_view::npos;
  if (underflow) value = 0;
  const bool number = whole && (error == std::errc() || underflow) && std::isfinite(value);
  if (!number || value < range.min || (range.min_open && value == range.min) || value > range.max) {
    return MakeError(ErrorCode::kUsage, "{} is '{}': it must be {}", what, Shown(text),
                     Allowed(range));
  }
  return value;
}

CLI::Option* AddUint(CLI::App* command, const std::string& flags, std::uint64_t& value,
                     UintRange range, const std::string& help) {
  return AddParsed(
      command, flags, value,
      [range](std::string_view name, std::string_view text) {
        return ParseUint(name, text, range);
      },
      help);
}

CLI::Option* AddUint(CLI::App* command, const std::string& flags,
                     std::optional<std::uint64_t>& value, UintRange range,
                     const std::string& help) {
  return AddParsed(
      command, flags, value,
      [range](std::string_view name, std::string_view text) {
        return ParseUint(name, text, range);
      },
      help);
}

CLI::Option* AddBytes(CLI::App* command, const std::string& flags,
                      std::optional<std::uint64_t>& value, UintRange range,
                      const std::string& help) {
  return AddParsed(
             command, flags, value,
             [range](std::string_view name, std::string_view text) {
               return ParseBytes(name, text, range);
             },
             help)
      ->type_name("BYTES");
}

CLI::Option* AddUints(CLI::App* command, const std::string& flags,
                      std::vector<std::uint64_t>& values, UintRange range,
                      const std::string& help) {
  const auto parse = [range](std::string_view name,
                             std::string_view text) -> base::Result<std::vector<std::uint64_t>> {
    std::vector<std::uint64_t> numbers;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      KV_TRY(const std::uint64_t number, ParseUint(name, text.substr(begin, end - begin), range));
      numbers.push_back(number);
      begin = end + 1;
    }
    return numbers;
  };
  return AddParsed(command, flags, values, parse, help)->type_name("N,…");
}

CLI::Option* AddFloat(CLI::App* command, const std::string& flags, float& value, FloatRange range,
                      const std::string& help) {
  return AddParsed(
      command, flags, value,
      [range](std::string_view name, std::string_view text) {
        return ParseFloat(name, text, range);
      },
      help);
}

CLI::Option* AddFloat(CLI::App* command, const std::string& flags, double& value, FloatRange range,
                      const std::string& help) {
  return AddParsed(
      command, flags, value,
      [range](std::string_view name, std::string_view text) {
        return ParseFloat(name, text, range);
      },
      help);
}

CLI::Option* AddFloat(CLI::App* command, const std::string& flags, std::optional<double>& value,
                      FloatRange range, const std::string& help) {
  return AddParsed(
      command, flags, value,
      [range](std::string_view name, std::string_view text) {
        return ParseFloat(name, text, range);
      },
      help);
}

}  // namespace kvasir::cli
