#include "server/host_check.h"

#include <algorithm>
#include <string>

namespace kvasir::server {

bool IsLoopbackHost(std::string_view host) {
  std::string name(host);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (const std::size_t colon = name.rfind(':');
      colon != std::string::npos && name.find(']', colon) == std::string::npos) {
    name.resize(colon);
  }
  const bool numeric = name.find_first_not_of("0123456789.") == std::string::npos;
  return name == "localhost" || name == "[::1]" || (numeric && name.starts_with("127."));
}

}  // namespace kvasir::server
