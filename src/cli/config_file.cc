#include "cli/config_file.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/env.h"
#include "cli/json_output.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

base::Result<void> Set(CLI::Option* option, const std::string& value) {
  try {
    option->add_result(value);
    option->run_callback();
  } catch (const CLI::Error& error) {
    return MakeError(ErrorCode::kUsage, "{}", error.what());
  }
  return base::Success();
}

}  // namespace

base::Result<void> ApplyConfigFile(CLI::App* command, const std::string& path) {
  KV_TRY(const auto file, base::Env::Default().Map(path));
  std::string_view rest = file->text();
  std::set<std::string> seen;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = Trim(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t equals = line.find('=');
    const std::string key(Trim(line.substr(0, equals)));
    if (equals == std::string_view::npos || key.empty()) {
      return MakeError(ErrorCode::kUsage, "'{}' line {}: '{}' is not of the form key = value", path,
                       number, OneLine(line));
    }
    CLI::Option* option = command->get_option_no_throw("--" + key);
    if (option == nullptr || key == "config" || key == "help") {
      return MakeError(ErrorCode::kUsage, "'{}' line {}: there is no setting '{}'", path, number,
                       OneLine(key));
    }
    if (!seen.insert(key).second) {
      return MakeError(ErrorCode::kUsage, "'{}' line {}: '{}' is set twice", path, number, key);
    }
    if (option->count() > 0) continue;
    const auto set = Set(option, std::string(Trim(line.substr(equals + 1))));
    if (!set) {
      return MakeError(ErrorCode::kUsage, "'{}' line {}: {}", path, number, set.error().message);
    }
  }
  return base::Success();
}

}  // namespace kvasir::cli
