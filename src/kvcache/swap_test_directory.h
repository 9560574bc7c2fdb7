// For tests: a directory that no other test process writes to, gone with its owner.
#ifndef KVASIR_KVCACHE_SWAP_TEST_DIRECTORY_H_
#define KVASIR_KVCACHE_SWAP_TEST_DIRECTORY_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace kvasir::kvcache {

class TestDirectory {
 public:
  TestDirectory() : path_(testing::TempDir() + "/kvasir-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
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

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_SWAP_TEST_DIRECTORY_H_
