// Any bytes at all as a session file, as they are and with a checksum that fits: ReadSession must
// return, not crash, refuse in one line, and give only sessions that hold what they say.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/env.h"
#include "base/hash.h"
#include "store/session_file.h"

namespace {

using namespace kvasir;  // NOLINT: a program of one file

// As session_file.cc has it.
constexpr std::uint64_t kChecksumSeed = 0x73657373;

// A file in memory that has a path.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("session", MFD_CLOEXEC)) { KV_CHECK(descriptor_ >= 0); }
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }
  void Replace(std::span<const std::byte> bytes) const {
    KV_CHECK(ftruncate(descriptor_, 0) == 0);
    KV_CHECK(pwrite(descriptor_, bytes.data(), bytes.size(), 0) ==
             static_cast<ssize_t>(bytes.size()));
  }

 private:
  int descriptor_;  // For as long as the process lives.
};

void Read(std::span<const std::byte> bytes) {
  static const MemoryFile file;
  file.Replace(bytes);
  const store::SessionModel model = {
      .weights = {1, 2}, .contract = 1, .block_tokens = 16, .policy = ""};
  const auto session = store::ReadSession(base::Env::Default(), file.path(), model);
  if (!session) {
    KV_CHECK(session.error().message.find('\n') == std::string::npos);
    return;
  }
  KV_CHECK(session.value().prompt_tokens >= 1);
  KV_CHECK(session.value().prompt_tokens <= session.value().tokens.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  Read(bytes);
  std::vector<std::byte> fitting(bytes.begin(), bytes.end());
  const base::Hash128 checksum = base::HashBytes128(fitting, kChecksumSeed);
  const auto end = std::as_bytes(std::span(&checksum, 1));
  fitting.insert(fitting.end(), end.begin(), end.end());
  Read(fitting);
  return 0;
}
