#include "eval/memory_env.h"

#include <utility>

namespace kvasir::eval {
namespace {

using base::Result;

class HeldBytes : public base::FileBytes {
 public:
  explicit HeldBytes(std::shared_ptr<const std::vector<std::byte>> contents)
      : contents_(std::move(contents)) {}
  std::span<const std::byte> bytes() const override { return *contents_; }

 private:
  std::shared_ptr<const std::vector<std::byte>> contents_;
};

class HeldFile : public base::WritableFile {
 public:
  explicit HeldFile(std::shared_ptr<std::vector<std::byte>> contents)
      : contents_(std::move(contents)) {}
  Result<void> Append(std::span<const std::byte> bytes) override {
    contents_->insert(contents_->end(), bytes.begin(), bytes.end());
    return base::Success();
  }
  Result<void> Sync() override { return base::Success(); }
  Result<void> Close() override { return base::Success(); }

 private:
  std::shared_ptr<std::vector<std::byte>> contents_;
};

}  // namespace

Result<MemoryEnv::Contents> MemoryEnv::Find(const std::string& path) const {
  const auto found = files_.find(path);
  if (found != files_.end()) return found->second;
  return base::MakeError(base::ErrorCode::kIo, "cannot open '{}': no such file in memory", path);
}

Result<std::unique_ptr<base::FileBytes>> MemoryEnv::Map(const std::string& path) {
  KV_TRY(Contents contents, Find(path));
  return std::unique_ptr<base::FileBytes>(new HeldBytes(std::move(contents)));
}

Result<std::unique_ptr<base::WritableFile>> MemoryEnv::Create(const std::string& path) {
  const auto contents = std::make_shared<std::vector<std::byte>>();
  files_[path] = contents;
  return std::unique_ptr<base::WritableFile>(new HeldFile(contents));
}

Result<void> MemoryEnv::Rename(const std::string& from, const std::string& to) {
  KV_TRY(Contents contents, Find(from));
  files_.erase(from);
  files_[to] = std::move(contents);
  return base::Success();
}

Result<void> MemoryEnv::Remove(const std::string& path) {
  KV_TRY(Find(path));
  files_.erase(path);
  return base::Success();
}

}  // namespace kvasir::eval
