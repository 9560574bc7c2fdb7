#include "server/server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "server/connection.h"

namespace kvasir::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using base::ErrorCode;
using base::MakeError;
using boost::system::error_code;

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
// Connections over the limit that are still told so, at one time.
constexpr std::uint64_t kRefusedAtOnce = 64;
// For answers that have ended to reach their clients after a drain.
constexpr std::chrono::seconds kFlushTime{5};

// As many open files as the connections need, or as the system allows.
void RaiseFileLimit(std::uint64_t connections) {
  constexpr std::uint64_t kOthers = 128;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, connections + kRefusedAtOnce + kOthers);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

struct Server::State {
  State(ModelService& service, engine::Engine& engine, ServerOptions options)
      : context(service, engine, std::move(options)) {}

  asio::awaitable<void> Accept();
  void OnSignal();
  void BeginDrain();
  // Ends Run once the engine is idle and nobody waits for a reply.
  void EndWhenFlushed();

  ServerContext context;
  tcp::acceptor acceptor{context.io};
  asio::signal_set signals{context.io};
  asio::steady_timer flush{context.io};
  std::thread drainer;
  bool drained = false;
};

asio::awaitable<void> Server::State::Accept() {
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kToken);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      // Too many open files, most likely: some will be closed soon.
      asio::steady_timer pause(context.io, std::chrono::milliseconds(50));
      co_await pause.async_wait(kToken);
      continue;
    }
    const std::uint64_t served = context.counts.open_connections - context.refusing;
    if (context.refusing >= kRefusedAtOnce) {
      ++context.counts.refused_connections;
      continue;  // The socket closes itself.
    }
    ++context.counts.accepted_connections;
    const auto connection = std::make_shared<Connection>(context, std::move(socket));
    if (served >= context.options.max_connections) {
      ++context.counts.refused_connections;
      asio::co_spawn(context.io, connection->Refuse(), asio::detached);
    } else {
      asio::co_spawn(context.io, connection->Run(), asio::detached);
    }
  }
}

void Server::State::OnSignal() {
  signals.async_wait([this](const error_code& error, int) {
    if (error) return;
    if (context.draining) {
      context.io.stop();
      return;
    }
    BeginDrain();
    OnSignal();
  });
}

void Server::State::BeginDrain() {
  if (std::exchange(context.draining, true)) return;
  error_code ignored;
  acceptor.close(ignored);
  for (Connection* connection : context.connections) connection->OnDrain();
  const auto allowed = static_cast<std::uint64_t>(context.options.drain_seconds * 1e6);
  drainer = std::thread([this, allowed] {
    context.engine.Drain(context.engine.Now() + allowed);
    asio::post(context.io, [this] { EndWhenFlushed(); });
  });
}

void Server::State::EndWhenFlushed() {
  drained = true;
  if (context.connections.empty()) {
    context.io.stop();
    return;
  }
  context.on_last_connection = [this] { context.io.stop(); };
  flush.expires_after(kFlushTime);
  flush.async_wait([this](const error_code& error) {
    if (!error) context.io.stop();
  });
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() {
  State& state = *state_;
  if (state.drainer.joinable()) state.drainer.join();
  state.context.workers.join();
  state.context.on_last_connection = nullptr;
}

base::Result<std::unique_ptr<Server>> Server::Make(ModelService& service, engine::Engine& engine,
                                                   ServerOptions options) {
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (error) {
    return MakeError(ErrorCode::kUsage,
                     "'{}' is no address to listen on: 127.0.0.1, ::1, 0.0.0.0 or another of this "
                     "machine's is needed",
                     host);
  }
  RaiseFileLimit(options.max_connections);
  const tcp::endpoint endpoint(address, options.port);
  auto state = std::make_unique<State>(service, engine, std::move(options));
  state->context.loopback = address.is_loopback();
  tcp::acceptor& acceptor = state->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return MakeError(ErrorCode::kIo, "cannot listen on {} port {}: {}", host, endpoint.port(),
                     error.message());
  }
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

std::uint16_t Server::port() const {
  error_code ignored;
  return state_->acceptor.local_endpoint(ignored).port();
}

std::string Server::address() const {
  error_code ignored;
  const tcp::endpoint endpoint = state_->acceptor.local_endpoint(ignored);
  const std::string address = endpoint.address().to_string();
  return fmt::format(fmt::runtime(endpoint.address().is_v6() ? "[{}]:{}" : "{}:{}"), address,
                     endpoint.port());
}

void Server::Run() {
  State& state = *state_;
  error_code ignored;
  state.signals.add(SIGINT, ignored);
  state.signals.add(SIGTERM, ignored);
  state.OnSignal();
  asio::co_spawn(state.context.io, state.Accept(), asio::detached);
  state.context.engine.Observe(state.context.events.queue());
  state.context.io.run();
  if (!state.drained) {
    // A second signal: what still runs ends now.
    state.context.engine.Drain(state.context.engine.Now());
  }
  state.context.engine.Observe(nullptr);
}

void Server::Stop() {
  asio::post(state_->context.io, [this] { state_->BeginDrain(); });
}

}  // namespace kvasir::server
