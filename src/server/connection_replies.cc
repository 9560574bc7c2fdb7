// Connection, what it answers: the half of it that knows endpoints and answers.
#include <fmt/format.h>

#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "server/cache_page.h"
#include "server/connection.h"
#include "server/session_folder.h"
#include "server/static_files.h"

namespace kvasir::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kClientGone = 499;  // For the log: nobody was there to be told.

// Whether a request is read sooner than it is handed to another thread and back: it is short, and
// names nothing that must be compiled.
bool IsQuick(std::string_view body) {
  constexpr std::size_t kShort = 8192;
  if (body.size() > kShort) return false;
  for (const std::string_view slow :
       {"\"response_format\"", "\"regex\"", "\"grammar\"", "\"choice\"", "\"verse\""}) {
    if (body.find(slow) != std::string_view::npos) return false;
  }
  return true;
}

}  // namespace

asio::awaitable<void> Connection::Respond(Exchange& exchange) {
  switch (*exchange.endpoint) {
    case Endpoint::kPage:
    case Endpoint::kHealth:
    case Endpoint::kReady:
    case Endpoint::kModels:
    case Endpoint::kModel:
    case Endpoint::kPreflight: {
      co_await SendReply(exchange, AtOnce(exchange));
      co_return;
    }
    case Endpoint::kCompletions:
    case Endpoint::kChat:
    case Endpoint::kNext: {
      co_await RunAnswer(exchange);
      co_return;
    }
    case Endpoint::kMetrics:
    case Endpoint::kTokenize:
    case Endpoint::kDetokenize:
    case Endpoint::kSession:
    case Endpoint::kCache: {
      HttpReply reply = co_await Slowly(exchange);
      co_await SendReply(exchange, std::move(reply));
      co_return;
    }
  }
}

HttpReply Connection::AtOnce(const Exchange& exchange) const {
  HttpReply reply;
  switch (*exchange.endpoint) {
    case Endpoint::kPage: {
      const StaticFile* file = FindStaticFile(exchange.request.path());
      reply.content_type = std::string(file->content_type);
      reply.body = std::string(file->content);
      reply.headers.emplace_back("Content-Security-Policy",
                                 "default-src 'self'; frame-ancestors 'none'");
      break;
    }
    case Endpoint::kHealth:
      reply.body = R"({"status":"ok"})";
      break;
    case Endpoint::kReady:
      if (context_.draining) {
        return ErrorReply(ApiError(503, "the server is shutting down", {}, "shutting_down"));
      }
      reply.body = R"({"status":"ready"})";
      break;
    case Endpoint::kModels:
      reply.body = context_.service.Models();
      break;
    case Endpoint::kModel: {
      const auto model = context_.service.ModelNamed(
          exchange.request.path().substr(std::string_view("/v1/models/").size()));
      if (!model) return ErrorReply(model.error());
      reply.body = model.value();
      break;
    }
    default:  // kPreflight
      reply.status = 204;
      reply.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
      reply.headers.emplace_back("Access-Control-Allow-Headers", "authorization, content-type");
      reply.headers.emplace_back("Access-Control-Max-Age", "600");
  }
  return reply;
}

// What needs a worker: it reads much, or waits for a step.
asio::awaitable<HttpReply> Connection::Slowly(Exchange& exchange) {
  HttpReply reply;
  const std::string& body = exchange.request.body;
  const ServerCounts counts = context_.counts;
  std::function<ApiResult<std::string>()> make;
  switch (*exchange.endpoint) {
    case Endpoint::kTokenize:
      make = [&] { return context_.service.Tokenize(body); };
      break;
    case Endpoint::kDetokenize:
      make = [&] { return context_.service.Detokenize(body); };
      break;
    case Endpoint::kCache:
      make = [&]() -> ApiResult<std::string> {
        KV_TRY(const std::string salt, ReadCacheCall(body));
        return CacheJson(context_.engine.Snapshot(&salt), context_.engine.geometry(),
                         context_.service.cache_policy(), salt);
      };
      break;
    case Endpoint::kSession:
      make = [&]() -> ApiResult<std::string> {
        const SessionFolder* sessions = context_.options.sessions.get();
        if (sessions == nullptr) {
          return ApiError(404, "this server keeps no sessions", {}, "no_sessions");
        }
        const std::string_view name =
            exchange.request.path().substr(std::string_view("/v1/sessions/").size());
        return sessions->Run(name, body, context_.service, context_.engine);
      };
      break;
    default:  // kMetrics
      reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
      make = [&]() -> ApiResult<std::string> {
        return MetricsText(counts, context_.engine.Snapshot().metrics);
      };
  }
  const bool ran = co_await OnWorker([&] {
    const auto made = make();
    if (made) {
      reply.body = made.value();
    } else {
      reply = ErrorReply(made.error());
    }
  });
  if (!ran) reply = ErrorReply(ApiError(503, "out of memory", {}, "overloaded"));
  co_return reply;
}

std::optional<ApiError> Connection::Submit(const std::shared_ptr<Answer>& answer) {
  const std::size_t count = answer->requests.size();
  for (std::size_t i = 0; i < count; ++i) {
    auto listener = std::make_unique<AnswerListener>(*context_.events.queue(), answer, i,
                                                     answer->wants_logits());
    const auto id = context_.engine.Submit(std::move(answer->requests[i]), listener.get());
    if (!id) {
      answer->Forget(count - i);
      CancelAnswer(*answer);
      return ApiError(id.error());
    }
    listener.release();  // It deletes itself when it has been told of the end.
    answer->ids.push_back(id.value());
  }
  return std::nullopt;
}

void Connection::CancelAnswer(Answer& answer) {
  for (const engine::RequestId id : answer.ids) context_.engine.Cancel(id);
}

asio::awaitable<std::optional<ApiError>> Connection::BeginAnswer(Exchange& exchange) {
  const std::string& body = exchange.request.body;
  const auto key = context_.options.keys.Find(exchange.request.authorization);
  const std::string client = key ? fmt::format("key {}", *key) : client_;
  if (const auto open = context_.engine.CheckOpen(client); !open) co_return ApiError(open.error());
  std::optional<ApiError> fault;
  const std::function<void()> make = [&] {
    auto made =
        *exchange.endpoint == Endpoint::kNext
            ? context_.service.Next(body, client)
            : context_.service.Complete(body, *exchange.endpoint == Endpoint::kChat, client);
    if (made) {
      exchange.answer = std::move(made.value());
    } else {
      fault = made.error();
    }
  };
  if (IsQuick(body)) {
    make();
  } else {
    const bool ran = co_await OnWorker(make);
    if (!ran) co_return ApiError(503, "out of memory", {}, "overloaded");
  }
  if (!fault) fault = Submit(exchange.answer);
  co_return fault;
}

asio::awaitable<void> Connection::RunAnswer(Exchange& exchange) {
  const std::optional<ApiError> fault = co_await BeginAnswer(exchange);
  if (fault) {
    co_await SendReply(exchange, ErrorReply(*fault));
    co_return;
  }
  // However this ends, the answer must not call back later, and what still runs is cancelled.
  Answer& answer = *exchange.answer;
  struct Ending {
    Connection& connection;
    Answer& answer;
    ~Ending() {
      answer.on_change = nullptr;
      if (!answer.ended()) connection.CancelAnswer(answer);
      error_code ignored;
      connection.socket_.cancel(ignored);  // The watch.
    }
  } ending{*this, answer};
  answer.on_change = [this, &exchange] { OnAnswerChange(exchange); };
  Watch();
  if (answer.streams()) {
    co_await Stream(exchange);
    co_return;
  }
  while (!answer.complete() && !vanished_) co_await Wait();
  if (vanished_) {
    exchange.status = kClientGone;
    co_return;
  }
  ApiResult<std::string> whole = std::string();
  if (answer.error()) {
    whole = *answer.error();
  } else {
    const bool made = co_await OnWorker([&] { whole = answer.Body(); });
    if (!made) whole = ApiError(503, "out of memory", {}, "overloaded");
  }
  HttpReply reply;
  if (whole) {
    reply.body = std::move(whole.value());
  } else {
    reply = ErrorReply(whole.error());
  }
  AddSeed(answer, reply);
  co_await SendReply(exchange, std::move(reply));
}

void Connection::AddSeed(const Answer& answer, HttpReply& reply) {
  if (const auto seed = answer.seed()) {
    reply.headers.emplace_back("X-Kvasir-Seed", fmt::format("{}", *seed));
  }
}

}  // namespace kvasir::server
