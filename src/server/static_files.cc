#include "server/static_files.h"

#include <algorithm>

namespace kvasir::server {

const StaticFile* FindStaticFile(std::string_view path) {
  const auto files = StaticFiles();
  const auto file =
      std::find_if(files.begin(), files.end(), [&](const StaticFile& f) { return f.path == path; });
  return file == files.end() ? nullptr : &*file;
}

}  // namespace kvasir::server
