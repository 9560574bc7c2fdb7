// ApiKeys: who may use the server.
#ifndef KVASIR_SERVER_API_KEYS_H_
#define KVASIR_SERVER_API_KEYS_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"

namespace kvasir::server {

inline constexpr std::size_t kMaxKeyBytes = 128;

// Whether the texts are equal, in time that depends on neither: both are looked at as kMaxKeyBytes.
// A longer text equals nothing.
bool EqualInConstantTime(std::string_view a, std::string_view b);

// Immutable; thread-safe.
class ApiKeys {
 public:
  // No keys: everybody may.
  ApiKeys() = default;
  // A key a line: 16 to kMaxKeyBytes visible ASCII characters; empty lines and lines that begin
  // with # are left out. kIo; kBadData naming the line, and for a file without a key. Never tells
  // a key.
  static base::Result<ApiKeys> Read(base::Env& env, const std::string& path);
  static base::Result<ApiKeys> Parse(std::string_view text, std::string_view name);

  bool empty() const { return keys_.empty(); }
  // The index of the key in "Bearer KEY", the value of an Authorization header; every key is
  // compared. Nothing if there is none.
  std::optional<std::size_t> Find(std::string_view authorization) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_API_KEYS_H_
