#include "base/faulty_env.h"

#include <algorithm>
#include <utility>

namespace kvasir::base {
namespace {

class TruncatedBytes : public FileBytes {
 public:
  TruncatedBytes(std::unique_ptr<FileBytes> whole, std::uint64_t limit)
      : whole_(std::move(whole)), limit_(limit) {}
  std::span<const std::byte> bytes() const override {
    const auto all = whole_->bytes();
    return all.first(std::min<std::uint64_t>(all.size(), limit_));
  }

 private:
  std::unique_ptr<FileBytes> whole_;
  std::uint64_t limit_;
};

class FaultyFile : public WritableFile {
 public:
  FaultyFile(FaultyEnv& env, std::unique_ptr<WritableFile> target)
      : env_(env), target_(std::move(target)) {}

  Result<void> Append(std::span<const std::byte> bytes) override {
    KV_TRY(env_.Step("write"));
    const std::uint64_t fits = env_.TakeBytes(bytes.size());
    KV_TRY(target_->Append(bytes.first(fits)));
    if (fits < bytes.size()) return MakeError(ErrorCode::kIo, "No space left on device (injected)");
    return Success();
  }
  Result<void> Sync() override {
    KV_TRY(env_.Step("sync"));
    return target_->Sync();
  }
  Result<void> Close() override {
    KV_TRY(env_.Step("close"));
    return target_->Close();
  }

 private:
  FaultyEnv& env_;
  std::unique_ptr<WritableFile> target_;
};

}  // namespace

Result<void> FaultyEnv::Step(const char* what) {
  ++operations_;
  if (operations_left_ != kNever && operations_left_-- == 0) {
    operations_left_ = kNever;
    return MakeError(ErrorCode::kIo, "injected fault at {}", what);
  }
  return Success();
}

std::uint64_t FaultyEnv::TakeBytes(std::uint64_t wanted) {
  if (bytes_left_ == kNever) return wanted;
  const std::uint64_t taken = std::min(wanted, bytes_left_);
  bytes_left_ -= taken;
  return taken;
}

Result<std::unique_ptr<FileBytes>> FaultyEnv::Map(const std::string& path) {
  KV_TRY(Step("map"));
  KV_TRY(auto whole, target_.Map(path));
  if (read_limit_ == kNever) return whole;
  return std::unique_ptr<FileBytes>(new TruncatedBytes(std::move(whole), read_limit_));
}

Result<std::unique_ptr<WritableFile>> FaultyEnv::Create(const std::string& path) {
  KV_TRY(Step("create"));
  KV_TRY(auto file, target_.Create(path));
  return std::unique_ptr<WritableFile>(new FaultyFile(*this, std::move(file)));
}

Result<void> FaultyEnv::Rename(const std::string& from, const std::string& to) {
  KV_TRY(Step("rename"));
  return target_.Rename(from, to);
}

Result<void> FaultyEnv::Remove(const std::string& path) { return target_.Remove(path); }

Result<void> FaultyEnv::MakeDirectories(const std::string& path) {
  KV_TRY(Step("mkdir"));
  return target_.MakeDirectories(path);
}

}  // namespace kvasir::base
