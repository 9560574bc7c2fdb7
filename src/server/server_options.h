// ServerOptions: where the server listens, and its limits.
#ifndef KVASIR_SERVER_SERVER_OPTIONS_H_
#define KVASIR_SERVER_SERVER_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/api_keys.h"

namespace kvasir::server {

class SessionFolder;

struct ServerOptions {
  std::string host = "127.0.0.1";  // An address, or "localhost".
  std::uint16_t port = 8080;       // 0: any free one.
  ApiKeys keys = {};
  std::string cors_origin = {};  // "*" or one origin that browsers may ask from; empty: none.

  std::uint64_t max_connections = 4096;
  std::uint64_t max_header_bytes = 16 * 1024;
  std::uint64_t max_body_bytes = 2 * 1024 * 1024;
  std::uint64_t max_unsent_bytes = 1024 * 1024;  // Of an answer that is read too slowly.
  double idle_seconds = 75;                      // Between requests of a connection.
  double request_seconds = 30;                   // To send a request whole, from its first byte.
  double write_seconds = 30;                     // To take what has been sent.
  double drain_seconds = 30;                     // To end answers when the server is asked to stop.

  // Of POST /v1/sessions/NAME; null: there is none.
  std::shared_ptr<const SessionFolder> sessions = nullptr;

  // One line a request, without what was asked: called from the thread of Run. May be empty.
  std::function<void(std::string_view)> log = {};
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_SERVER_OPTIONS_H_
