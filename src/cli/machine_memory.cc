#include "cli/machine_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// The number in a file; "max", no file and no number are no limit.
std::uint64_t LimitIn(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t bytes = 0;
  return file >> bytes ? bytes : kNoLimit;
}

// Of the group and of every group it lies in.
std::uint64_t LeastUpwards(const fs::path& mount, fs::path group, const char* file) {
  std::uint64_t least = LimitIn(mount / file);
  for (; group.has_relative_path(); group = group.parent_path()) {
    least = std::min(least, LimitIn(mount / group.relative_path() / file));
  }
  return least;
}

}  // namespace

std::uint64_t ControlGroupMemory(std::string_view groups, const fs::path& mount) {
  std::uint64_t least = kNoLimit;
  std::istringstream lines{std::string(groups)};
  // HIERARCHY:CONTROLLERS:PATH; version 2 has no controllers.
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,") {
      least = std::min(least, LeastUpwards(mount, group, "memory.max"));
    } else if (controllers.find(",memory,") != controllers.npos) {
      least = std::min(least, LeastUpwards(mount / "memory", group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

std::uint64_t MachineMemory() {
  std::uint64_t least = kNoLimit;
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) {
    least = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
  }
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      least = std::min<std::uint64_t>(least, limit.rlim_cur);
    }
  }
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream groups;
  groups << file.rdbuf();
  return std::min(least, ControlGroupMemory(groups.str(), "/sys/fs/cgroup"));
}

}  // namespace kvasir::cli
