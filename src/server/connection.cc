#include "server/connection.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <ctime>
#include <new>
#include <utility>

#include "base/check.h"
#include "server/host_check.h"

namespace kvasir::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr double kSoftCloseSeconds = 5;

using Parser = http::request_parser<http::string_body>;

std::string ValueOf(const Parser& parser, http::field field) {
  const auto value = parser.get()[field];
  return std::string(value.data(), value.size());
}

void TakeHead(const Parser& parser, HttpRequest& request) {
  request.method = std::string(parser.get().method_string());
  request.target = std::string(parser.get().target());
  request.authorization = ValueOf(parser, http::field::authorization);
  request.content_type = ValueOf(parser, http::field::content_type);
  request.origin = ValueOf(parser, http::field::origin);
  request.host = ValueOf(parser, http::field::host);
}

// What a fault of reading is told as; nothing if nobody is there.
std::optional<ApiError> ReadFault(const error_code& error, bool timed_out) {
  if (timed_out) return ApiError(408, "the request did not come in time", {}, "request_timeout");
  if (error == http::error::body_limit) {
    return ApiError(413, "the body is too long", {}, "body_too_long");
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return ApiError(431, "the header is too long", {}, "header_too_long");
  }
  if (error == http::error::partial_message) {
    return ApiError(400, "the request ends before it is whole", {}, "incomplete_request");
  }
  if (error.category() == make_error_code(http::error::bad_method).category()) {
    return ApiError(400, "this is not an HTTP/1.1 request", {}, "bad_request");
  }
  return std::nullopt;
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

ServerContext::ServerContext(ModelService& model_service, engine::Engine& the_engine,
                             ServerOptions the_options)
    : options(std::move(the_options)), service(model_service), engine(the_engine) {}

Connection::Connection(ServerContext& context, asio::ip::tcp::socket socket)
    : context_(context),
      socket_(std::move(socket)),
      deadline_(context.io),
      wake_(context.io, asio::steady_timer::time_point::max()),
      // Room for a header and what comes with it; bodies go to the parser piece by piece.
      buffer_(static_cast<std::size_t>(context.options.max_header_bytes) + 64 * 1024) {
  error_code ignored;
  client_ = socket_.remote_endpoint(ignored).address().to_string();
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);  // For SendNow.
  context_.connections.insert(this);
  ++context_.counts.open_connections;
}

Connection::~Connection() {
  context_.connections.erase(this);
  --context_.counts.open_connections;
  if (context_.connections.empty() && context_.on_last_connection) context_.on_last_connection();
}

void Connection::Arm(double seconds) {
  const std::uint64_t turn = ++armed_;
  timed_out_ = false;
  deadline_.expires_after(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  deadline_.async_wait([self = shared_from_this(), turn](const error_code& error) {
    if (error || turn != self->armed_) return;
    self->timed_out_ = true;
    error_code ignored;
    self->socket_.cancel(ignored);
  });
}

void Connection::Disarm() {
  ++armed_;
  deadline_.cancel();
}

void Connection::Notify() {
  notified_ = true;
  wake_.cancel();
}

asio::awaitable<void> Connection::Wait() {
  while (!notified_) co_await wake_.async_wait(kToken);
  notified_ = false;
}

void Connection::Watch() {
  socket_.async_wait(asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this()](const error_code& error) {
                       if (error) return;
                       error_code ignored;
                       // Readable without a byte: the end, or a reset.
                       if (self->socket_.available(ignored) > 0) return;
                       self->vanished_ = true;
                       self->Notify();
                     });
}

asio::awaitable<bool> Connection::OnWorker(std::function<void()> work) {
  struct State {
    bool done = false;
    bool failed = false;
  };
  State state;  // Of this coroutine, which goes on only when the worker is done with it.
  asio::post(context_.workers, [this, &state, work = std::move(work)] {
    bool failed = false;
    try {
      work();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    asio::post(context_.io, [self = shared_from_this(), &state, failed] {
      state = {true, failed};
      self->Notify();
    });
  });
  while (!state.done) co_await Wait();
  if (vanished_) Notify();  // Whoever waits next is to know.
  co_return !state.failed;
}

asio::awaitable<bool> Connection::Write(std::string bytes) {
  Arm(context_.options.write_seconds);
  const auto [error, count] = co_await asio::async_write(socket_, asio::buffer(bytes), kToken);
  Disarm();
  if (error && timed_out_) too_slow_ = true;
  co_return !error;
}

asio::awaitable<bool> Connection::AwaitRequest() {
  if (buffer_.size() > 0) co_return true;
  constexpr std::size_t kFirstRead = 4096;
  idle_ = true;
  Arm(context_.options.idle_seconds);
  const auto [error, count] = co_await socket_.async_read_some(buffer_.prepare(kFirstRead), kToken);
  Disarm();
  idle_ = false;
  if (error) co_return false;
  buffer_.commit(count);
  co_return true;
}

asio::awaitable<bool> Connection::ReadRequest(Exchange& exchange) {
  const bool coming = co_await AwaitRequest();
  if (!coming) co_return false;
  Arm(context_.options.request_seconds);
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(context_.options.max_header_bytes));
  parser.body_limit(context_.options.max_body_bytes);
  const auto [head_error, head_count] =
      co_await http::async_read_header(socket_, buffer_, parser, kToken);
  exchange.body_unread = true;
  std::optional<ApiError>& fault = exchange.fault;
  if (head_error) {
    fault = ReadFault(head_error, timed_out_);
    if (!fault) co_return false;
  } else {
    TakeHead(parser, exchange.request);
    exchange.head = exchange.request.method == "HEAD";
    exchange.http10 = parser.get().version() < 11;
    exchange.keep_alive = parser.get().keep_alive() && !context_.draining;
    exchange.body_unread = !parser.is_done();
    fault = CheckHead(exchange);
  }
  if (!fault && exchange.body_unread) {
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      co_await Write("HTTP/1.1 100 Continue\r\n\r\n");
      Arm(context_.options.request_seconds);
    }
    const auto [error, count] = co_await http::async_read(socket_, buffer_, parser, kToken);
    if (error) {
      fault = ReadFault(error, timed_out_);
      if (!fault) co_return false;
    }
    exchange.body_unread = static_cast<bool>(error);
  }
  if (timed_out_) ++context_.counts.slow_clients;
  Disarm();
  if (exchange.body_unread) exchange.keep_alive = false;
  exchange.request.body = std::move(parser.get().body());
  exchange.begin = Clock::now();
  co_return true;
}

std::optional<ApiError> Connection::CheckHead(Exchange& exchange) const {
  const HttpRequest& request = exchange.request;
  if (context_.loopback && !request.host.empty() && !IsLoopbackHost(request.host)) {
    return ApiError(403, "the Host header does not name this machine", {}, "wrong_host");
  }
  const auto endpoint = FindEndpoint(request);
  if (!endpoint) return endpoint.error();
  exchange.endpoint = endpoint.value();
  if (endpoint.value() == Endpoint::kPreflight && context_.options.cors_origin.empty()) {
    return ApiError(405, "requests from pages of other origins are not allowed here", {},
                    "method_not_allowed");
  }
  if (context_.options.keys.empty() || IsPublic(endpoint.value()) ||
      context_.options.keys.Find(request.authorization)) {
    return std::nullopt;
  }
  return ApiError(401, "an API key is needed: Authorization: Bearer KEY", {}, "invalid_api_key");
}

asio::awaitable<void> Connection::Run() {
  const auto self = shared_from_this();
  try {
    while (true) {
      Exchange exchange;
      const bool read = co_await ReadRequest(exchange);
      if (!read) break;
      if (exchange.fault) {
        co_await SendReply(exchange, ErrorReply(*exchange.fault));
      } else {
        co_await Respond(exchange);
      }
      Log(exchange);
      if (exchange.body_unread) co_await CloseSoftly();
      if (!exchange.keep_alive || vanished_ || too_slow_ || context_.draining) break;
    }
  } catch (const std::bad_alloc&) {
    // This client's connection ends; the others go on.
  }
  Disarm();
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  socket_.close(ignored);
}

asio::awaitable<void> Connection::Refuse() {
  const auto self = shared_from_this();
  ++context_.refusing;
  Exchange exchange;
  const ApiError error(503, "too many connections", {}, "overloaded");
  co_await SendReply(exchange, ErrorReply(error));
  co_await CloseSoftly();
  error_code ignored;
  socket_.close(ignored);
  --context_.refusing;
}

void Connection::OnDrain() {
  error_code ignored;
  if (idle_) socket_.cancel(ignored);
}

asio::awaitable<void> Connection::CloseSoftly() {
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  std::string sink(64 * 1024, '\0');
  Arm(kSoftCloseSeconds);
  while (true) {
    const auto [error, count] = co_await socket_.async_read_some(asio::buffer(sink), kToken);
    if (error) break;
  }
  Disarm();
}

void Connection::AddCors(const Exchange& exchange, HttpReply& reply) const {
  const std::string& allowed = context_.options.cors_origin;
  if (allowed.empty() || exchange.request.origin.empty()) return;
  if (allowed != "*" && allowed != exchange.request.origin) return;
  reply.headers.emplace_back("Access-Control-Allow-Origin", allowed);
  if (allowed != "*") reply.headers.emplace_back("Vary", "Origin");
}

asio::awaitable<void> Connection::SendReply(Exchange& exchange, HttpReply reply) {
  AddCors(exchange, reply);
  exchange.status = reply.status;
  std::string bytes = ReplyHead(reply, {.keep_alive = exchange.keep_alive});
  if (!exchange.head) bytes += reply.body;
  exchange.sent_bytes += bytes.size();
  const bool sent = co_await Write(std::move(bytes));
  if (!sent) exchange.keep_alive = false;
}

void Connection::Log(const Exchange& exchange) {
  const std::string_view name =
      exchange.endpoint ? EndpointName(*exchange.endpoint) : std::string_view("none");
  ++context_.counts.requests[{std::string(name), exchange.status}];
  const double seconds = SecondsSince(exchange.begin);
  if (exchange.answer) {
    context_.counts.answer_us.Add(static_cast<std::uint64_t>(seconds * 1e6));
  }
  if (too_slow_) ++context_.counts.slow_clients;
  if (vanished_) ++context_.counts.vanished_clients;
  if (!context_.options.log) return;
  std::string line =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {} {} {} {} {}B {:.1f}ms", fmt::gmtime(std::time(nullptr)),
                  client_, exchange.request.method == "POST" ? "POST" : "GET", name,
                  exchange.status, exchange.sent_bytes, seconds * 1e3);
  if (exchange.answer) {
    const engine::Usage& usage = exchange.answer->usage();
    line += fmt::format(" prompt={} cached={} completion={}", usage.prompt_tokens,
                        usage.cached_tokens, usage.completion_tokens);
  }
  context_.options.log(line);
}

}  // namespace kvasir::server
