// The tensors of a model that may lie in several safetensors files.
//
// Source: what transformers' save_pretrained writes: model.safetensors, or files
// model-00001-of-00002.safetensors … beside model.safetensors.index.json, whose weight_map names
// the file of each tensor.
#ifndef KVASIR_FORMATS_SAFETENSORS_SET_H_
#define KVASIR_FORMATS_SAFETENSORS_SET_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "formats/json_document.h"
#include "formats/safetensors_reader.h"

namespace kvasir::formats {

inline constexpr std::size_t kMaxSafetensorsFiles = 1000;

// Movable; immutable, so thread-safe. Invariant: each tensor is in one file only, and in an index
// exactly if it is in the file that the index names.
class SafetensorsSet {
 public:
  // `path`: one safetensors file, an index, or a folder that holds model.safetensors, else
  // model.safetensors.index.json. Errors as SafetensorsFile::Open has them; kBadData for an index
  // that does not fit its files, or names one outside its folder.
  static base::Result<SafetensorsSet> Open(base::Env& env, const std::string& path);

  const std::string& name() const { return name_; }  // The one file, or the index.
  const std::vector<SafetensorsFile>& files() const { return files_; }
  const SafetensorsTensor* Find(std::string_view tensor_name) const;  // Null if there is none.

 private:
  base::Result<void> OpenShards(base::Env& env, const JsonDocument& index);
  base::Result<void> CheckIndex(const JsonNode& weight_map,
                                const std::vector<std::string>& names) const;

  std::string name_;
  std::vector<SafetensorsFile> files_;
};

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_SAFETENSORS_SET_H_
