// Files held in memory, for work that must not touch the disk.
#ifndef KVASIR_EVAL_MEMORY_ENV_H_
#define KVASIR_EVAL_MEMORY_ENV_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"

namespace kvasir::eval {

// Directories need not exist. A file's bytes live as long as anybody has it open. Single-threaded.
class MemoryEnv : public base::Env {
 public:
  base::Result<std::unique_ptr<base::FileBytes>> Map(const std::string& path) override;
  base::Result<std::unique_ptr<base::WritableFile>> Create(const std::string& path) override;
  base::Result<void> Rename(const std::string& from, const std::string& to) override;
  base::Result<void> Remove(const std::string& path) override;
  base::Result<void> MakeDirectories(const std::string&) override { return base::Success(); }
  bool Exists(const std::string& path) override { return files_.contains(path); }

 private:
  using Contents = std::shared_ptr<std::vector<std::byte>>;
  base::Result<Contents> Find(const std::string& path) const;

  std::map<std::string, Contents> files_;
};

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_MEMORY_ENV_H_
