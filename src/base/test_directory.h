// For tests: an empty directory that no other process writes to, gone with its holder.
#ifndef KVASIR_BASE_TEST_DIRECTORY_H_
#define KVASIR_BASE_TEST_DIRECTORY_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/check.h"

namespace kvasir::base {

class TestDirectory {
 public:
  TestDirectory() : path_((std::filesystem::temp_directory_path() / "kvasir-XXXXXX").string()) {
    KV_CHECK(mkdtemp(path_.data()) != nullptr);
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kvasir::base

#endif  // KVASIR_BASE_TEST_DIRECTORY_H_
