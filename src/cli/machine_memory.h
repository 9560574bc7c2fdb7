// How much memory this process may use.
#ifndef KVASIR_CLI_MACHINE_MEMORY_H_
#define KVASIR_CLI_MACHINE_MEMORY_H_

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace kvasir::cli {

// Bytes: the least of the machine's physical memory, the limits on the process (RLIMIT_AS,
// RLIMIT_DATA) and those on its control groups; 2^64 - 1 if none is known.
std::uint64_t MachineMemory();

// The least memory limit of the groups named in `groups` (as /proc/self/cgroup has them), and of
// those above them, under the folder where the groups are mounted; 2^64 - 1 if there is none.
// Source: the kernel's admin guides to control groups, versions 1 and 2.
std::uint64_t ControlGroupMemory(std::string_view groups, const std::filesystem::path& mount);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_MACHINE_MEMORY_H_
