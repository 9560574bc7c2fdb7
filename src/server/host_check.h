// Whether a request meant this machine: against pages that have their own name point here.
#ifndef KVASIR_SERVER_HOST_CHECK_H_
#define KVASIR_SERVER_HOST_CHECK_H_

#include <string_view>

namespace kvasir::server {

// Whether a Host header, with or without a port, names this machine by a loopback name: localhost,
// 127.x.x.x or [::1].
bool IsLoopbackHost(std::string_view host);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_HOST_CHECK_H_
