// Connection: one client's TCP connection and the requests that come over it.
#ifndef KVASIR_SERVER_CONNECTION_H_
#define KVASIR_SERVER_CONNECTION_H_

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "engine/engine.h"
#include "server/answer.h"
#include "server/endpoints.h"
#include "server/event_pump.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/model_service.h"
#include "server/server_options.h"

namespace kvasir::server {

class Connection;

// What the connections of a server share. Of the network's thread, but for what guards itself.
struct ServerContext {
  ServerContext(ModelService& model_service, engine::Engine& the_engine, ServerOptions the_options);

  const ServerOptions options;
  ModelService& service;
  engine::Engine& engine;
  ServerCounts counts;
  std::unordered_set<Connection*> connections;
  bool loopback = true;        // It listens on an address of this machine alone.
  bool draining = false;       // No more requests are taken.
  std::uint64_t refusing = 0;  // Open connections that are only told that they are too many.
  std::function<void()> on_last_connection;  // May be empty.
  boost::asio::thread_pool workers{2};
  // It owns the connections, which use all of the above.
  boost::asio::io_context io{1};
  EventPump events{io};
};

// Single-threaded: of the network's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ServerContext& context, boost::asio::ip::tcp::socket socket);
  ~Connection();

  // Until either side closes.
  boost::asio::awaitable<void> Run();
  // Over the limit: tells it, and closes.
  boost::asio::awaitable<void> Refuse();
  // Closes it if it waits for a request.
  void OnDrain();

 private:
  using Clock = std::chrono::steady_clock;

  // One request, as far as it has got.
  struct Exchange {
    HttpRequest request;
    std::optional<Endpoint> endpoint;  // Nothing: not found out yet, or there is none.
    bool head = false;
    bool http10 = false;
    bool keep_alive = false;
    bool body_unread = false;  // The client may still be sending: close softly.
    Clock::time_point begin = Clock::now();
    int status = 0;
    std::uint64_t sent_bytes = 0;
    std::shared_ptr<Answer> answer;
    bool stream_framed = false;     // Of a stream: the last of it is in unsent_, or sent.
    std::optional<ApiError> fault;  // What is wrong with the request; nothing else happens then.
  };

  // False: there is no request, and nobody to be told.
  boost::asio::awaitable<bool> ReadRequest(Exchange& exchange);
  // Waits for the first byte of a request.
  boost::asio::awaitable<bool> AwaitRequest();
  // What can be said before the body has come: no such path, no key, too long.
  std::optional<ApiError> CheckHead(Exchange& exchange) const;
  boost::asio::awaitable<void> Respond(Exchange& exchange);
  HttpReply AtOnce(const Exchange& exchange) const;
  boost::asio::awaitable<HttpReply> Slowly(Exchange& exchange);
  boost::asio::awaitable<void> RunAnswer(Exchange& exchange);
  // Reads the request and hands it to the engine; what is wrong with it, or with the moment.
  boost::asio::awaitable<std::optional<ApiError>> BeginAnswer(Exchange& exchange);
  boost::asio::awaitable<void> Stream(Exchange& exchange);
  // Adds what the answer has for the client to unsent_, and the end of the stream after the last.
  void FrameOutput(Exchange& exchange);
  // Sends of unsent_ what the system takes at once. Sets vanished_ if nobody is there.
  void SendNow(Exchange& exchange);
  void OnAnswerChange(Exchange& exchange);
  std::optional<ApiError> Submit(const std::shared_ptr<Answer>& answer);
  void CancelAnswer(Answer& answer);
  static void AddSeed(const Answer& answer, HttpReply& reply);

  boost::asio::awaitable<void> SendReply(Exchange& exchange, HttpReply reply);
  boost::asio::awaitable<bool> Write(std::string bytes);
  // Ends the sending side, and reads for a while what the client still sends, so that it sees the
  // reply instead of a reset.
  boost::asio::awaitable<void> CloseSoftly();
  void AddCors(const Exchange& exchange, HttpReply& reply) const;
  void Log(const Exchange& exchange);

  // Runs work on a worker; false if it threw for lack of memory.
  boost::asio::awaitable<bool> OnWorker(std::function<void()> work);
  boost::asio::awaitable<void> Wait();  // Until Notify.
  void Notify();
  // After so long the socket's operations end with an error, and timed_out_ is set.
  void Arm(double seconds);
  void Disarm();
  // Sets vanished_ when the client closes its side while its answer is being made.
  void Watch();

  ServerContext& context_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer wake_;
  boost::beast::flat_buffer buffer_;
  std::string client_;       // Address
  std::uint64_t armed_ = 0;  // Counts Arm and Disarm: an older timer does nothing.
  std::string unsent_;       // Of a stream: bytes as they go to the socket.
  std::string events_;       // Room for FrameOutput.
  // A stream waits for tokens, and all before is sent: they may be sent from where they come in,
  // without going through the coroutine.
  bool sends_directly_ = false;
  bool timed_out_ = false;
  bool notified_ = false;
  bool vanished_ = false;
  bool too_slow_ = false;
  bool idle_ = false;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_CONNECTION_H_
