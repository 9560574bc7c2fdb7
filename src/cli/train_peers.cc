#include "cli/train_peers.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::MakeError;

// Set by Open MPI's mpirun for each process that it starts.
constexpr const char* kCountVariable = "OMPI_COMM_WORLD_SIZE";

// In the build's folder, or where it is installed.
fs::path LibraryPath() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* name : {"libkvasir_mpi.so", "../lib/kvasir/libkvasir_mpi.so"}) {
    if (fs::exists(folder / name, ignored)) return folder / name;
  }
  return {};
}

}  // namespace

base::Result<std::unique_ptr<training::Peers>> FindPeers() {
  const char* count = std::getenv(kCountVariable);
  if (!count || std::string(count) == "1") return std::unique_ptr<training::Peers>();
  const fs::path path = LibraryPath();
  if (path.empty()) {
    return WithHint(
        MakeError(ErrorCode::kUsage,
                  "mpirun started {} processes, but this program was built without MPI", count),
        "install libopenmpi-dev and build again, or run one process");
  }
  // Open MPI finds its own parts by names that this library has loaded.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* make = library ? dlsym(library, "KvasirMpiPeers") : nullptr;
  if (!make) {
    const char* why = dlerror();
    return MakeError(ErrorCode::kIo, "cannot load '{}': {}", path.string(), why ? why : "?");
  }
  std::unique_ptr<training::Peers> peers(reinterpret_cast<training::Peers* (*)()>(make)());
  if (!peers) return MakeError(ErrorCode::kIo, "MPI does not start");
  return peers;
}

}  // namespace kvasir::cli
