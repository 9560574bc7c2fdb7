// Files behind an interface, so that tests can inject faults (faulty_env.h).
#ifndef KVASIR_BASE_ENV_H_
#define KVASIR_BASE_ENV_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kvasir::base {

// Read-only bytes of a file, mapped or held; alive as long as this object. Thread-safe.
class FileBytes {
 public:
  virtual ~FileBytes() = default;
  virtual std::span<const std::byte> bytes() const = 0;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes().data()), bytes().size()};
  }
};

// A file being written from its start. Single-threaded. Destroying it without Close() discards
// what was not yet flushed and reports nothing.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Result<void> Append(std::span<const std::byte> bytes) = 0;
  virtual Result<void> Sync() = 0;   // To the disk, not only to the kernel.
  virtual Result<void> Close() = 0;  // Reports what a delayed write lost.
};

// Thread-safe. Every Error is kIo and names the path.
class Env {
 public:
  virtual ~Env() = default;
  static Env& Default();

  // Maps a regular file. A directory, a missing or unreadable file is an Error; an empty one is
  // not.
  virtual Result<std::unique_ptr<FileBytes>> Map(const std::string& path) = 0;
  // Creates or truncates.
  virtual Result<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  virtual Result<void> Rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> Remove(const std::string& path) = 0;
  virtual Result<void> MakeDirectories(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
};

// Replaces path by contents such that a reader, or a crash at any moment, sees the old file or the
// new one, whole: written beside it, synced, renamed. On an Error the old file is untouched.
Result<void> WriteFileAtomic(Env& env, const std::string& path,
                             std::span<const std::byte> contents);
Result<void> WriteFileAtomic(Env& env, const std::string& path, std::string_view contents);

}  // namespace kvasir::base

#endif  // KVASIR_BASE_ENV_H_
