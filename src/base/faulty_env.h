// An Env for tests that fails on demand: full disk, torn and short writes, refused opens.
#ifndef KVASIR_BASE_FAULTY_ENV_H_
#define KVASIR_BASE_FAULTY_ENV_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "base/env.h"

namespace kvasir::base {

// Wraps another Env (not owned). Single-threaded.
class FaultyEnv : public Env {
 public:
  explicit FaultyEnv(Env& target) : target_(target) {}

  // After this many bytes in all, Append writes what still fits and fails: a full disk.
  void LimitBytes(std::uint64_t bytes) { bytes_left_ = bytes; }
  // The n-th operation from now (0 = the next), of any kind, fails.
  void FailOperation(std::uint64_t n) { operations_left_ = n; }
  // Map returns only this many leading bytes of each file: a truncated file.
  void TruncateReads(std::uint64_t bytes) { read_limit_ = bytes; }
  std::uint64_t operations() const { return operations_; }

  Result<std::unique_ptr<FileBytes>> Map(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> Remove(const std::string& path) override;
  Result<void> MakeDirectories(const std::string& path) override;
  bool Exists(const std::string& path) override { return target_.Exists(path); }

  // For the files it hands out: counts one operation and says whether it may go on.
  Result<void> Step(const char* what);
  // How many of these bytes still fit on the disk.
  std::uint64_t TakeBytes(std::uint64_t wanted);

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  Env& target_;
  std::uint64_t bytes_left_ = kNever;
  std::uint64_t operations_left_ = kNever;
  std::uint64_t read_limit_ = kNever;
  std::uint64_t operations_ = 0;
};

}  // namespace kvasir::base

#endif  // KVASIR_BASE_FAULTY_ENV_H_
