// A library for LD_PRELOAD: one call to the operating system fails, as a disk, a kernel without
// memory or a network makes it fail. For tests of the whole program, whatever makes the call.
//
// FAIL_CALL   open, read, write, sync, rename, mmap, resize, accept, receive or send
// FAIL_AT     which of them, from 0; "3+": that one and all later ones
// FAIL_UNDER  files are counted below this folder only; sockets are always
// FAIL_TOLD   a file that is created when a call has been made to fail
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

namespace {

constexpr int kFiles = 4096;
std::atomic<bool> below[kFiles];  // Whether this descriptor is of a file below FAIL_UNDER.
std::atomic<long> calls{0};

bool Below(const char* path) {
  const char* folder = getenv("FAIL_UNDER");
  return folder != nullptr && path != nullptr && strncmp(path, folder, strlen(folder)) == 0;
}

bool Below(int file) { return file >= 0 && file < kFiles && below[file]; }

// Whether this call, of a kind that is counted, is to fail; then errno says why.
bool Fails(const char* kind, int why) {
  const char* wanted = getenv("FAIL_CALL");
  const char* at = getenv("FAIL_AT");
  if (wanted == nullptr || at == nullptr || strcmp(wanted, kind) != 0) return false;
  const long number = calls++, first = atol(at);
  if (number < first || (number > first && strchr(at, '+') == nullptr)) return false;
  if (const char* told = getenv("FAIL_TOLD")) {
    const long file = syscall(SYS_openat, AT_FDCWD, told, O_CREAT | O_WRONLY, 0600);
    if (file >= 0) syscall(SYS_close, file);
  }
  errno = why;
  return true;
}

template <typename F>
F* Next(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

int Opened(int file, const char* path) {
  if (file >= 0 && file < kFiles) below[file] = Below(path);
  return file;
}

mode_t ModeOf(int flags, va_list more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

}  // namespace

// Parameters as the C library declares them.
#define OPEN(name)                                        \
  extern "C" int name(const char* path, int flags, ...) { \
    va_list more;                                         \
    va_start(more, flags);                                \
    const mode_t mode = ModeOf(flags, more);              \
    va_end(more);                                         \
    if (Below(path) && Fails("open", EMFILE)) return -1;  \
    static auto* const next = Next(&name, #name);         \
    return Opened(next(path, flags, mode), path);         \
  }
OPEN(open)
OPEN(open64)
#undef OPEN

extern "C" int close(int file) {
  if (file >= 0 && file < kFiles) below[file] = false;
  static auto* const next = Next(&close, "close");
  return next(file);
}

#define ON_FILE(result, name, kind, why, failure, parameters, arguments) \
  extern "C" result name parameters {                                    \
    if (Below(file) && Fails(kind, why)) return failure;                 \
    static auto* const next = Next(&name, #name);                        \
    return next arguments;                                               \
  }
ON_FILE(ssize_t, read, "read", EIO, -1, (int file, void* to, size_t size), (file, to, size))
ON_FILE(ssize_t, pread, "read", EIO, -1, (int file, void* to, size_t size, off_t at),
        (file, to, size, at))
ON_FILE(ssize_t, pread64, "read", EIO, -1, (int file, void* to, size_t size, off64_t at),
        (file, to, size, at))
ON_FILE(ssize_t, write, "write", ENOSPC, -1, (int file, const void* from, size_t size),
        (file, from, size))
ON_FILE(ssize_t, pwrite, "write", ENOSPC, -1, (int file, const void* from, size_t size, off_t at),
        (file, from, size, at))
ON_FILE(ssize_t, pwrite64, "write", ENOSPC, -1,
        (int file, const void* from, size_t size, off64_t at), (file, from, size, at))
ON_FILE(ssize_t, writev, "write", ENOSPC, -1, (int file, const iovec* parts, int count),
        (file, parts, count))
ON_FILE(ssize_t, pwritev, "write", ENOSPC, -1, (int file, const iovec* parts, int count, off_t at),
        (file, parts, count, at))
ON_FILE(int, fsync, "sync", EIO, -1, (int file), (file))
ON_FILE(int, fdatasync, "sync", EIO, -1, (int file), (file))
ON_FILE(int, ftruncate, "resize", ENOSPC, -1, (int file, off_t size), (file, size))
ON_FILE(int, ftruncate64, "resize", ENOSPC, -1, (int file, off64_t size), (file, size))
ON_FILE(void*, mmap, "mmap", ENOMEM, MAP_FAILED,
        (void* at, size_t size, int access, int flags, int file, off_t offset),
        (at, size, access, flags, file, offset))
ON_FILE(void*, mmap64, "mmap", ENOMEM, MAP_FAILED,
        (void* at, size_t size, int access, int flags, int file, off64_t offset),
        (at, size, access, flags, file, offset))
#undef ON_FILE

extern "C" int rename(const char* from, const char* to) noexcept {
  if (Below(to) && Fails("rename", EACCES)) return -1;
  static auto* const next = Next(&rename, "rename");
  return next(from, to);
}

#define ON_SOCKET(result, name, kind, why, parameters, arguments) \
  extern "C" result name parameters {                             \
    if (Fails(kind, why)) return -1;                              \
    static auto* const next = Next(&name, #name);                 \
    return next arguments;                                        \
  }
ON_SOCKET(int, accept, "accept", EMFILE, (int file, sockaddr* from, socklen_t* size),
          (file, from, size))
ON_SOCKET(int, accept4, "accept", EMFILE, (int file, sockaddr* from, socklen_t* size, int flags),
          (file, from, size, flags))
ON_SOCKET(ssize_t, recv, "receive", ECONNRESET, (int file, void* to, size_t size, int flags),
          (file, to, size, flags))
ON_SOCKET(ssize_t, recvmsg, "receive", ECONNRESET, (int file, msghdr* message, int flags),
          (file, message, flags))
ON_SOCKET(ssize_t, send, "send", EPIPE, (int file, const void* from, size_t size, int flags),
          (file, from, size, flags))
ON_SOCKET(ssize_t, sendmsg, "send", EPIPE, (int file, const msghdr* message, int flags),
          (file, message, flags))
#undef ON_SOCKET
