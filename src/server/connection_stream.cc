// Connection, the streams: how tokens get to a client.
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

#include "server/connection.h"

namespace kvasir::server {

namespace asio = boost::asio;
using boost::system::error_code;

void Connection::FrameOutput(Exchange& exchange) {
  Answer& answer = *exchange.answer;
  if (answer.pending_bytes() > 0) {
    if (exchange.http10) {
      answer.MoveOutput(unsent_);
    } else {
      answer.MoveOutput(events_);
      AppendChunk(unsent_, events_);
      events_.clear();
    }
  }
  if (answer.complete() && !std::exchange(exchange.stream_framed, true) && !exchange.http10) {
    AppendChunk(unsent_, "");
  }
}

void Connection::SendNow(Exchange& exchange) {
  if (unsent_.empty()) return;
  error_code error;
  const std::size_t sent = socket_.send(asio::buffer(unsent_), 0, error);
  if (error && error != asio::error::would_block) vanished_ = true;
  exchange.sent_bytes += sent;
  unsent_.erase(0, sent);
}

void Connection::OnAnswerChange(Exchange& exchange) {
  Answer& answer = *exchange.answer;
  if (sends_directly_) {
    FrameOutput(exchange);
    SendNow(exchange);
    if (!unsent_.empty() || exchange.stream_framed || vanished_) Notify();
    return;
  }
  if (answer.pending_bytes() > context_.options.max_unsent_bytes && !too_slow_) {
    too_slow_ = true;
    error_code ignored;
    socket_.cancel(ignored);
  }
  if (answer.complete()) Notify();
}

asio::awaitable<void> Connection::Stream(Exchange& exchange) {
  HttpReply reply;
  reply.content_type = "text/event-stream; charset=utf-8";
  AddSeed(*exchange.answer, reply);
  AddCors(exchange, reply);
  exchange.status = reply.status;
  exchange.keep_alive = exchange.keep_alive && !exchange.http10;
  unsent_ = ReplyHead(reply, {.keep_alive = exchange.keep_alive, .chunked = !exchange.http10});
  while (!vanished_ && !too_slow_) {
    FrameOutput(exchange);
    SendNow(exchange);
    if (vanished_ || (unsent_.empty() && exchange.stream_framed)) break;
    if (unsent_.empty()) {
      sends_directly_ = true;
      co_await Wait();
      sends_directly_ = false;
      continue;
    }
    // The client is behind: it has so long to take the rest.
    exchange.sent_bytes += unsent_.size();
    const bool sent = co_await Write(std::exchange(unsent_, {}));
    if (!sent) vanished_ = !too_slow_;
  }
  unsent_ = {};
  events_ = {};
}

}  // namespace kvasir::server
