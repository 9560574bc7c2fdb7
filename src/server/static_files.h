// The files of web/, built into the program.
#ifndef KVASIR_SERVER_STATIC_FILES_H_
#define KVASIR_SERVER_STATIC_FILES_H_

#include <span>
#include <string_view>

namespace kvasir::server {

struct StaticFile {
  std::string_view path;  // "/" of index.html, "/NAME" of another.
  std::string_view content_type;
  std::string_view content;
};

// All of them; made at build time by cmake/embed.cmake.
std::span<const StaticFile> StaticFiles();

// Null if there is none at this path.
const StaticFile* FindStaticFile(std::string_view path);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_STATIC_FILES_H_
