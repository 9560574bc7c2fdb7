// Server: HTTP/1.1 for one model (docs/server.md).
#ifndef KVASIR_SERVER_SERVER_H_
#define KVASIR_SERVER_SERVER_H_

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "engine/engine.h"
#include "server/model_service.h"
#include "server/server_options.h"

namespace kvasir::server {

// Everything of the network happens on the thread of Run; what takes longer than that may wait
// (reading JSON, tokens, constraints) on two further threads; steps on the engine's own. Borrows
// service and engine; the engine must be idle when Run returns, which Run sees to.
class Server {
 public:
  // Listens. kUsage for an address that is none, kIo for one that cannot be taken. Raises the
  // process's limit on open files as far as max_connections needs and the system allows.
  static base::Result<std::unique_ptr<Server>> Make(ModelService& service, engine::Engine& engine,
                                                    ServerOptions options);
  ~Server();

  // "127.0.0.1:8080", or "[::1]:8080".
  std::string address() const;
  std::uint16_t port() const;

  // Serves until Stop, SIGINT or SIGTERM; then takes no more requests, lets answers end for
  // drain_seconds, ends the others with an error, and returns. A second signal ends it at once.
  void Run();
  // Thread-safe.
  void Stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_SERVER_H_
