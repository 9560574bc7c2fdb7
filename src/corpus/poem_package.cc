#include "corpus/poem_package.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace kvasir::corpus {
namespace {

using base::Error;
using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::string_view kPoemFolder = "dist/quantangshi";
constexpr std::string_view kSuffix = ".json";

Error NotAPackage(const std::string& package_dir, std::string_view prefix, std::string_view why) {
  return base::WithHint(
      MakeError(ErrorCode::kBadData,
                "'{}' is not an unpacked chinese-poetry package: {} (looked for {}/{}N{})",
                package_dir, why, kPoemFolder, prefix, kSuffix),
      "npm pack chinese-poetry@2.0.1 && tar xf chinese-poetry-2.0.1.tgz, then name the folder "
      "'package'");
}

// N of a name prefix + N + ".json". Leading zeros are refused, so that no two names mean one N.
bool ParsePoemFileName(std::string_view name, std::string_view prefix, std::uint64_t& number) {
  if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) return false;
  if (name.size() <= prefix.size() + kSuffix.size()) return false;
  name.remove_prefix(prefix.size());
  name.remove_suffix(kSuffix.size());
  if (name.size() > 1 && name[0] == '0') return false;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size();
}

Result<nlohmann::json> ParseJson(const std::string& path, std::string_view text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    // e.byte counts from 1 and includes the byte that was refused.
    return MakeError(ErrorCode::kBadData, "'{}' is not valid JSON: refused at offset {} of {}",
                     path, e.byte == 0 ? 0 : e.byte - 1, text.size());
  } catch (const nlohmann::json::exception&) {  // The only other one that parsing throws.
    return MakeError(ErrorCode::kBadData, "'{}' holds a number that is out of range", path);
  }
}

// The paragraphs of one poem, joined.
Result<std::string> JoinParagraphs(const std::string& path, std::size_t index,
                                   const nlohmann::json& poem) {
  const auto bad = [&] {
    return MakeError(ErrorCode::kBadData,
                     "'{}': poem {} is not an object whose \"paragraphs\" is an array of strings",
                     path, index);
  };
  if (!poem.is_object()) return bad();
  const auto paragraphs = poem.find("paragraphs");
  if (paragraphs == poem.end() || !paragraphs->is_array()) return bad();
  std::string joined;
  for (const nlohmann::json& paragraph : *paragraphs) {
    if (!paragraph.is_string()) return bad();
    joined += paragraph.get_ref<const std::string&>();
  }
  return joined;
}

}  // namespace

Result<std::vector<PoemFile>> ListPoemFiles(const std::string& package_dir,
                                            std::string_view period) {
  const std::string prefix = fmt::format("poet.{}.", period);
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path root(package_dir);
  if (!fs::is_directory(root, error)) {
    return NotAPackage(package_dir, prefix,
                       fs::exists(root, error) ? "not a folder" : "no such folder");
  }
  const fs::path folder = root / kPoemFolder;
  if (!fs::is_directory(folder, error))
    return NotAPackage(package_dir, prefix, "it has no such folder");
  std::vector<PoemFile> files;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::uint64_t number = 0;
    if (ParsePoemFileName(entry->path().filename().native(), prefix, number)) {
      files.push_back({number, entry->path().native()});
    }
  }
  if (error) {
    return MakeError(ErrorCode::kIo, "cannot list '{}': {}", folder.native(), error.message());
  }
  if (files.empty()) return NotAPackage(package_dir, prefix, "it has no such file");
  std::sort(files.begin(), files.end(),
            [](const PoemFile& a, const PoemFile& b) { return a.number < b.number; });
  return files;
}

Result<std::vector<std::string>> ReadPoemFile(base::Env& env, const std::string& path,
                                              const Simplifier& simplifier) {
  KV_TRY(const auto file, env.Map(path));
  KV_TRY(const nlohmann::json poems, ParseJson(path, file->text()));
  if (!poems.is_array()) {
    return MakeError(ErrorCode::kBadData, "'{}' holds {}, not an array of poems", path,
                     poems.type_name());
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < poems.size(); ++i) {
    KV_TRY(const std::string traditional, JoinParagraphs(path, i, poems[i]));
    KV_TRY(std::string poem, simplifier.Convert(traditional));
    texts.push_back(std::move(poem));
  }
  return texts;
}

}  // namespace kvasir::corpus
