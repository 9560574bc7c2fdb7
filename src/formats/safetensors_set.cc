#include "formats/safetensors_set.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "formats/printable.h"

namespace kvasir::formats {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::string_view kFileName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";

// A file of the index's own folder.
bool IsPlainName(std::string_view name) {
  return name.ends_with(".safetensors") && !name.starts_with('.') && name.size() <= 255 &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

// The names in a weight_map, each once, in ascending order.
Result<std::vector<std::string>> FilesOf(const JsonDocument& index, const JsonNode& weight_map) {
  std::vector<std::string> names;
  for (const JsonItem& item : weight_map.items()) {
    const auto file = item.value.AsString();
    if (!file || !IsPlainName(*file)) {
      return MakeError(ErrorCode::kBadData,
                       "{}: tensor {} is said to be in {}, which names no safetensors file of "
                       "this folder",
                       index.name(), Quoted(item.key), item.value.Text());
    }
    const auto at = std::lower_bound(names.begin(), names.end(), *file);
    if (at != names.end() && *at == *file) continue;
    if (names.size() == kMaxSafetensorsFiles) {
      return MakeError(ErrorCode::kBadData, "{}: weight_map names more than {} files", index.name(),
                       kMaxSafetensorsFiles);
    }
    names.insert(at, std::string(*file));
  }
  if (!names.empty()) return names;
  return MakeError(ErrorCode::kBadData, "{}: weight_map names no file", index.name());
}

}  // namespace

Result<SafetensorsSet> SafetensorsSet::Open(base::Env& env, const std::string& path) {
  SafetensorsSet set;
  set.name_ = path;
  const bool file = path.ends_with(".safetensors") && !env.Exists(path + "/config.json");
  if (!file && !path.ends_with(".json")) {
    const std::filesystem::path folder(path);
    set.name_ = (folder / kFileName).string();
    const std::string index = (folder / kIndexName).string();
    if (!env.Exists(set.name_) && env.Exists(index)) set.name_ = index;
  }
  if (set.name_.ends_with(".json")) {
    KV_TRY(const auto index, JsonDocument::Open(env, set.name_));
    KV_TRY(set.OpenShards(env, index));
    return set;
  }
  KV_TRY(auto only, SafetensorsFile::Open(env, set.name_));
  set.files_.push_back(std::move(only));
  return set;
}

Result<void> SafetensorsSet::OpenShards(base::Env& env, const JsonDocument& index) {
  const auto weight_map = index.root().Find("weight_map");
  if (!weight_map || !weight_map->is_object()) {
    return MakeError(ErrorCode::kBadData, "{}: weight_map, an object of file names, is missing",
                     name_);
  }
  KV_TRY(const auto names, FilesOf(index, *weight_map));
  for (const std::string& name : names) {
    const auto path = std::filesystem::path(name_).parent_path() / name;
    KV_TRY(auto file, SafetensorsFile::Open(env, path.string()));
    files_.push_back(std::move(file));
  }
  return CheckIndex(*weight_map, names);
}

Result<void> SafetensorsSet::CheckIndex(const JsonNode& weight_map,
                                        const std::vector<std::string>& names) const {
  std::size_t named = 0;
  for (const JsonItem& item : weight_map.items()) {
    const std::string_view name = *item.value.AsString();
    const auto at = std::lower_bound(names.begin(), names.end(), name) - names.begin();
    const SafetensorsFile& file = files_[static_cast<std::size_t>(at)];
    if (file.Find(item.key) == nullptr) {
      return MakeError(ErrorCode::kBadData, "{}: tensor {} is not in {}, which it names", name_,
                       Quoted(item.key), Quoted(name));
    }
    ++named;
  }
  std::size_t held = 0;
  for (const SafetensorsFile& file : files_) held += file.tensors().size();
  if (held == named) return base::Success();
  // Every named one is there, so some file holds one that is not named, or named elsewhere.
  for (std::size_t i = 0; i < files_.size(); ++i) {
    for (const SafetensorsTensor& tensor : files_[i].tensors()) {
      const auto entry = weight_map.Find(tensor.name);
      if (entry && entry->AsString() == names[i]) continue;
      return MakeError(ErrorCode::kBadData, "{}: {} holds tensor {}, which the index does not say",
                       name_, Quoted(names[i]), Quoted(tensor.name));
    }
  }
  return base::Success();
}

const SafetensorsTensor* SafetensorsSet::Find(std::string_view tensor_name) const {
  for (const SafetensorsFile& file : files_) {
    if (const SafetensorsTensor* tensor = file.Find(tensor_name)) return tensor;
  }
  return nullptr;
}

}  // namespace kvasir::formats
