#include "store/lmdb_check.h"

#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace kvasir::store {
namespace {

constexpr MDB_dbi kFreePages = 0;
constexpr MDB_dbi kTables = 1;
constexpr std::chrono::seconds kMostTime{20};

// LMDB maps what its header says; where the file ends earlier, a read would be a SIGBUS. Grown by
// zeros it is refused as any other damage, and pages never written, which a sound file may end
// with, are never read.
bool MakeAsLongAsItSays(MDB_env* env) {
  MDB_envinfo info;
  MDB_stat numbers;
  int fd = -1;
  struct stat file;
  if (mdb_env_info(env, &info) != 0 || mdb_env_stat(env, &numbers) != 0) return false;
  if (mdb_env_get_fd(env, &fd) != 0 || fstat(fd, &file) != 0) return false;
  const std::uint64_t bytes = (info.me_last_pgno + std::uint64_t{1}) * numbers.ms_psize;
  if (static_cast<std::uint64_t>(file.st_size) >= bytes) return true;
  return ftruncate(fd, static_cast<off_t>(bytes)) == 0;
}

bool WalkTable(MDB_txn* txn, MDB_dbi table, bool values, std::uint64_t* entries) {
  MDB_cursor* cursor = nullptr;
  if (mdb_cursor_open(txn, table, &cursor) != 0) return false;
  MDB_val key;
  MDB_val data;
  unsigned sum = 0;
  int status = 0;
  while ((status = mdb_cursor_get(cursor, &key, values ? &data : nullptr, MDB_NEXT)) == 0) {
    const auto* bytes =
        static_cast<const volatile unsigned char*>(values ? data.mv_data : key.mv_data);
    const std::size_t size = values ? data.mv_size : key.mv_size;
    for (std::size_t i = 0; i < size; ++i) sum += bytes[i];
    ++*entries;
  }
  mdb_cursor_close(cursor);
  return status == MDB_NOTFOUND;
}

bool WalkAll(MDB_env* env) {
  MDB_txn* txn = nullptr;
  if (mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn) != 0) return false;
  std::uint64_t entries = 0;
  bool sound =
      WalkTable(txn, kFreePages, true, &entries) && WalkTable(txn, kTables, true, &entries);
  for (const char* name : {"values", "uses", "order", "meta"}) {
    MDB_dbi table = 0;
    const int opened = sound ? mdb_dbi_open(txn, name, 0, &table) : MDB_NOTFOUND;
    if (opened == MDB_NOTFOUND) continue;  // Not made yet.
    MDB_stat numbers;
    entries = 0;
    sound = opened == 0 && mdb_stat(txn, table, &numbers) == 0 &&
            WalkTable(txn, table, false, &entries) && entries == numbers.ms_entries;
  }
  mdb_txn_abort(txn);
  return sound;
}

// In the child.
bool Check(const std::string& directory) {
  MDB_env* env = nullptr;
  if (mdb_env_create(&env) != 0) return false;
  const bool sound = mdb_env_set_maxdbs(env, 8) == 0 &&
                     mdb_env_open(env, directory.c_str(), MDB_NOTLS, 0600) == 0 &&
                     MakeAsLongAsItSays(env) && WalkAll(env);
  mdb_env_close(env);
  return sound;
}

}  // namespace

bool LmdbFileIsSound(const std::string& directory) {
  if (access((directory + "/data.mdb").c_str(), F_OK) != 0) return true;
  const pid_t child = fork();
  if (child < 0) return true;  // No process can be had: LMDB's own checks must do.
  if (child == 0) {
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere >= 0) dup2(nowhere, 2);  // LMDB says on stderr what it aborts for.
    for (const int fatal : {SIGABRT, SIGBUS, SIGSEGV, SIGFPE, SIGILL}) signal(fatal, SIG_DFL);
    _exit(Check(directory) ? 0 : 1);
  }
  const auto end = std::chrono::steady_clock::now() + kMostTime;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace kvasir::store
