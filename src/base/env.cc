#include "base/env.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace kvasir::base {
namespace {

Error SystemError(const char* action, const std::string& path, int error_number) {
  return MakeError(ErrorCode::kIo, "cannot {} '{}': {}", action, path, std::strerror(error_number));
}

class MappedFile : public FileBytes {
 public:
  MappedFile(void* address, std::size_t size) : address_(address), size_(size) {}
  ~MappedFile() override {
    if (size_ > 0) munmap(address_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const override {
    return {static_cast<const std::byte*>(address_), size_};
  }

 private:
  void* address_;
  std::size_t size_;
};

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixWritableFile() override {
    if (fd_ >= 0) close(fd_);
  }
  PosixWritableFile(const PosixWritableFile&) = delete;
  PosixWritableFile& operator=(const PosixWritableFile&) = delete;

  Result<void> Append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        return SystemError("write", path_, errno);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return Success();
  }

  Result<void> Sync() override {
    // A pipe or /dev/null cannot be synced; that is no loss.
    if (fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) {
      return SystemError("write", path_, errno);
    }
    return Success();
  }

  Result<void> Close() override {
    const int result = close(std::exchange(fd_, -1));
    if (result != 0) return SystemError("write", path_, errno);
    return Success();
  }

 private:
  int fd_;
  std::string path_;
};

class PosixEnv : public Env {
 public:
  Result<std::unique_ptr<FileBytes>> Map(const std::string& path) override {
    // O_NONBLOCK: to open a pipe that nobody writes to would wait for ever. Regular files ignore
    // it.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return SystemError("open", path, errno);
    struct stat info {};
    if (fstat(fd, &info) != 0) {
      const int error_number = errno;
      close(fd);
      return SystemError("read", path, error_number);
    }
    if (!S_ISREG(info.st_mode)) {
      close(fd);
      return MakeError(ErrorCode::kIo, "cannot read '{}': not a regular file", path);
    }
    const auto size = static_cast<std::size_t>(info.st_size);
    void* address = nullptr;
    if (size > 0) {
      address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (address == MAP_FAILED) {
        const int error_number = errno;
        close(fd);
        return SystemError("map", path, error_number);
      }
    }
    close(fd);
    return std::unique_ptr<FileBytes>(new MappedFile(address, size));
  }

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return SystemError("create", path, errno);
    return std::unique_ptr<WritableFile>(new PosixWritableFile(fd, path));
  }

  Result<void> Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) return SystemError("replace", to, errno);
    return Success();
  }

  Result<void> Remove(const std::string& path) override {
    if (unlink(path.c_str()) != 0) return SystemError("remove", path, errno);
    return Success();
  }

  Result<void> MakeDirectories(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return SystemError("create directory", path, error.value());
    return Success();
  }

  bool Exists(const std::string& path) override { return access(path.c_str(), F_OK) == 0; }
};

Result<void> WriteAndSync(Env& env, const std::string& path, std::span<const std::byte> contents) {
  KV_TRY(auto file, env.Create(path));
  KV_TRY(file->Append(contents));
  KV_TRY(file->Sync());
  return file->Close();
}

}  // namespace

Env& Env::Default() {
  static PosixEnv env;
  return env;
}

Result<void> WriteFileAtomic(Env& env, const std::string& path,
                             std::span<const std::byte> contents) {
  // A device or pipe cannot be replaced by a rename; it is written to directly.
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_directory(status)) {
    return WriteAndSync(env, path, contents);
  }
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  Result<void> written = WriteAndSync(env, temporary, contents);
  if (written) written = env.Rename(temporary, path);
  if (written) return written;
  if (env.Exists(temporary)) (void)env.Remove(temporary);
  Error error = written.error();  // Of the caller's file: it knows no other.
  if (const std::size_t at = error.message.find(temporary); at != std::string::npos) {
    error.message.replace(at, temporary.size(), path);
  }
  return error;
}

Result<void> WriteFileAtomic(Env& env, const std::string& path, std::string_view contents) {
  return WriteFileAtomic(env, path, std::as_bytes(std::span(contents.data(), contents.size())));
}

}  // namespace kvasir::base
