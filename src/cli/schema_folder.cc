#include "cli/schema_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/env.h"
#include "cli/json_output.h"

namespace kvasir::cli {

using base::ErrorCode;
using base::MakeError;
using nlohmann::ordered_json;

base::Result<std::vector<SchemaWithTexts>> ReadSchemaFolder(const std::string& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".json") paths.push_back(entry->path());
  }
  if (error) {
    return MakeError(ErrorCode::kIo, "folder '{}' cannot be read: {}", folder, error.message());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<SchemaWithTexts> all;
  for (const auto& path : paths) {
    KV_TRY(const auto file, base::Env::Default().Map(path.string()));
    const auto bytes = file->bytes();
    const auto document = ordered_json::parse(
        std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), nullptr,
        /*allow_exceptions=*/false);
    if (!document.is_object() || !document.contains("schema")) {
      return MakeError(ErrorCode::kBadData, "'{}' is no JSON object with a member \"schema\"",
                       path.string());
    }
    SchemaWithTexts one = {path.filename().string(), DumpLine(document["schema"]), {}};
    const auto tests = document.value("tests", ordered_json::array());
    for (const ordered_json& test : tests) {
      if (test.is_object() && test.contains("data")) one.texts.push_back(DumpLine(test["data"]));
    }
    if (!one.texts.empty()) all.push_back(std::move(one));
  }
  if (all.empty()) {
    return MakeError(ErrorCode::kUsage, "folder '{}' holds no .json file with a schema and tests",
                     folder);
  }
  return all;
}

}  // namespace kvasir::cli
