// Files that are installed beside the program or the library, wherever that is.
#ifndef KVASIR_BASE_INSTALLED_FILE_H_
#define KVASIR_BASE_INSTALLED_FILE_H_

#include <optional>
#include <string>
#include <string_view>

namespace kvasir::base {

// The path of NAME, or of share/kvasir/NAME, in the folder of the program or library that holds
// this code, or in one of the three above it: PREFIX/lib/x86_64-linux-gnu/libkvasir.so finds
// PREFIX/share/kvasir/NAME, and build/release/kvasir the checkout's NAME. Then the same from the
// running program's folder. Nothing if there is none.
std::optional<std::string> FindInstalled(std::string_view name);

}  // namespace kvasir::base

#endif  // KVASIR_BASE_INSTALLED_FILE_H_
