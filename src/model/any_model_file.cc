#include "model/any_model_file.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "model/hf_folder.h"

namespace kvasir::model {
namespace {

class HeldBytes : public base::FileBytes {
 public:
  explicit HeldBytes(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

base::Result<formats::GgufFile> OpenAnyModelFile(base::Env& env, const std::string& path) {
  if (!IsHfFolder(env, path)) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      return base::MakeError(base::ErrorCode::kIo,
                             "'{}' is a folder without config.json; a model's folder holds it, "
                             "tokenizer.json and model.safetensors",
                             path);
    }
    return formats::GgufFile::Open(env, path);
  }
  KV_TRY(auto bytes, GgufOfHfFolder(env, path));
  return formats::GgufFile::Own(std::make_unique<HeldBytes>(std::move(bytes)), path);
}

}  // namespace kvasir::model
