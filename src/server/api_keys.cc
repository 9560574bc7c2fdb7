#include "server/api_keys.h"

#include <algorithm>

namespace kvasir::server {
namespace {

using base::ErrorCode;
using base::MakeError;

constexpr std::size_t kMinKeyBytes = 16;

}  // namespace

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  std::array<unsigned char, kMaxKeyBytes> left{};
  std::array<unsigned char, kMaxKeyBytes> right{};
  std::copy_n(a.begin(), std::min(a.size(), left.size()), left.begin());
  std::copy_n(b.begin(), std::min(b.size(), right.size()), right.begin());
  // volatile: the loop may not end at the first difference.
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < kMaxKeyBytes; ++i) {
    difference = static_cast<unsigned char>(difference | (left[i] ^ right[i]));
  }
  return (difference == 0) & (a.size() == b.size()) & (a.size() <= kMaxKeyBytes);
}

base::Result<ApiKeys> ApiKeys::Read(base::Env& env, const std::string& path) {
  KV_TRY(const auto file, env.Map(path));
  return Parse(file->text(), path);
}

base::Result<ApiKeys> ApiKeys::Parse(std::string_view text, std::string_view name) {
  ApiKeys keys;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const bool visible =
        std::all_of(line.begin(), line.end(), [](char c) { return c > 0x20 && c < 0x7F; });
    if (!visible || line.size() < kMinKeyBytes || line.size() > kMaxKeyBytes) {
      return MakeError(ErrorCode::kBadData,
                       "'{}' line {}: an API key must be {} to {} visible ASCII characters", name,
                       number, kMinKeyBytes, kMaxKeyBytes);
    }
    keys.keys_.emplace_back(line);
  }
  if (keys.keys_.empty()) return MakeError(ErrorCode::kBadData, "'{}' holds no API key", name);
  return keys;
}

std::optional<std::size_t> ApiKeys::Find(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (!authorization.starts_with(kScheme)) return std::nullopt;
  const std::string_view given = authorization.substr(kScheme.size());
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (EqualInConstantTime(keys_[i], given)) found = i;
  }
  return found;
}

}  // namespace kvasir::server
