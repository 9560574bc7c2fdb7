#include "cli/train_texts.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::MakeError;

constexpr std::size_t kMaxFiles = 100000;

bool IsHidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

base::Result<void> AddFolder(const std::string& folder, std::vector<std::string>& files) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;  // A link to nothing is no file.
    if (IsHidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file(unreadable) && entry->file_size(unreadable) != 0) {
      found.push_back(entry->path());
    }
    if (found.size() + files.size() > kMaxFiles) {
      return MakeError(ErrorCode::kUsage, "'{}' has too many files; allowed are {}", folder,
                       kMaxFiles);
    }
  }
  if (error) {
    return MakeError(ErrorCode::kIo, "cannot read the folder '{}': {}", folder, error.message());
  }
  if (found.empty()) {
    return MakeError(ErrorCode::kBadData, "the folder '{}' has no file with text in it", folder);
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& path : found) files.push_back(path.string());
  return base::Success();
}

}  // namespace

base::Result<std::vector<std::string>> ExpandTexts(std::span<const std::string> arguments) {
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (fs::is_directory(argument, error)) {
      KV_TRY(AddFolder(argument, files));
    } else {
      files.push_back(argument);
    }
  }
  return files;
}

}  // namespace kvasir::cli
