// What the server counts, and its text as Prometheus reads it.
//
// Source: the Prometheus text exposition format 0.0.4.
#ifndef KVASIR_SERVER_METRICS_H_
#define KVASIR_SERVER_METRICS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "engine/histogram.h"
#include "engine/metrics.h"

namespace kvasir::server {

// Of the network's thread. Single-threaded; a copy is a snapshot.
struct ServerCounts {
  // By a name of the server's own, never what a client sent, and status.
  std::map<std::pair<std::string, int>, std::uint64_t> requests;
  std::uint64_t open_connections = 0;
  std::uint64_t accepted_connections = 0;
  std::uint64_t refused_connections = 0;
  std::uint64_t vanished_clients = 0;
  std::uint64_t slow_clients = 0;
  engine::Histogram answer_us;  // From the request's last byte to the answer's.
};

std::string MetricsText(const ServerCounts& server, const engine::Metrics& engine);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_METRICS_H_
