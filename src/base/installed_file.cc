#include "base/installed_file.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace kvasir::base {
namespace {

namespace fs = std::filesystem;

// The file that holds this code; of a statically linked program, the program as it was called.
fs::path OwnFile() {
  static const int kHere = 0;
  Dl_info info = {};
  if (dladdr(&kHere, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored);
}

}  // namespace

std::optional<std::string> FindInstalled(std::string_view name) {
  constexpr int kLevels = 4;
  std::error_code ignored;
  for (fs::path folder : {OwnFile(), fs::read_symlink("/proc/self/exe", ignored)}) {
    folder = folder.parent_path();
    for (int level = 0; level < kLevels && !folder.empty(); ++level) {
      for (const char* place : {"", "share/kvasir"}) {
        const fs::path candidate = folder / place / name;
        if (fs::exists(candidate, ignored)) return candidate.lexically_normal().string();
      }
      folder = folder.parent_path();
    }
  }
  return std::nullopt;
}

}  // namespace kvasir::base
