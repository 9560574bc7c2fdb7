// The server over real sockets of the loopback interface.
#include "server/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "constraints/json_value.h"
#include "engine/engine_test_models.h"

namespace kvasir::server {
namespace {

using std::chrono::steady_clock;

constexpr const char* kText = "春风花月江山水人天云日夜雨白青流霜一不上，。\n abcdef";

// A client that sends bytes as the test says, and reads what comes back.
class Client {
 public:
  explicit Client(std::uint16_t port) : file_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(file_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    const timeval wait{20, 0};
    setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  }
  ~Client() { Close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  // Whether all of it could be sent.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void EndSending() { shutdown(file_, SHUT_WR); }
  void Close() {
    if (file_ >= 0) close(file_);
    file_ = -1;
  }
  // Some bytes; empty at the end, or after 20 s without any.
  std::string Receive() {
    char buffer[65536];
    const ssize_t got = recv(file_, buffer, sizeof(buffer), 0);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
  }
  // Until the text holds this, or the end.
  std::string ReceiveUntil(std::string_view end) {
    std::string all;
    while (all.find(end) == std::string::npos) {
      const std::string more = Receive();
      if (more.empty()) break;
      all += more;
    }
    return all;
  }
  // One reply with a Content-Length.
  std::string ReceiveReply() {
    std::string all = ReceiveUntil("\r\n\r\n");
    const std::size_t head = all.find("\r\n\r\n");
    const std::size_t field = all.find("Content-Length: ");
    if (head == std::string::npos || field > head) return all;
    const std::size_t length = std::strtoul(all.c_str() + field + 16, nullptr, 10);
    while (all.size() < head + 4 + length) {
      const std::string more = Receive();
      if (more.empty()) break;
      all += more;
    }
    return all;
  }

 private:
  int file_;
  bool connected_ = false;
};

int StatusOf(const std::string& reply) {
  return reply.starts_with("HTTP/1.1 ") ? std::atoi(reply.c_str() + 9) : 0;
}
std::string BodyOf(const std::string& reply) {
  const std::size_t head = reply.find("\r\n\r\n");
  return head == std::string::npos ? "" : reply.substr(head + 4);
}
std::string Post(std::string_view path, std::string_view body, std::string_view more = "") {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(more) +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}
std::string Get(std::string_view path, std::string_view more = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(more) +
         "\r\n";
}

class ServerTest : public testing::Test {
 protected:
  void TearDown() override { Stop(); }

  void Start(ServerOptions options = {}, engine::SchedulerOptions engine_options = {},
             std::uint64_t context = 128) {
    tokenizer_ = engine::TokenizerOf(kText);
    model_ = engine::TinyGpt2(tokenizer_->vocabulary().size(), context);
    auto service = ModelService::Make(*model_, *tokenizer_,
                                      {.id = "tiny", .cache_policy = "full", .created = 5});
    ASSERT_TRUE(service);
    service_ = std::move(service.value());
    auto engine = engine::Engine::Make(*model_, tokenizer_->vocabulary(), team_, engine_options);
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(engine.value());
    options.port = 0;
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_ += line;
      log_ += '\n';
    };
    auto server = Server::Make(*service_, *engine_, std::move(options));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(server.value());
    port_ = server_->port();
    thread_ = std::thread([this] { server_->Run(); });
  }
  void Stop() {
    if (!thread_.joinable()) return;
    server_->Stop();
    thread_.join();
  }
  std::string Ask(const std::string& request) {
    Client client(port_);
    EXPECT_TRUE(client.connected());
    client.Send(request);
    return client.ReceiveReply();
  }
  // Whatever happened before, the server says at once that it lives.
  void ExpectHealthy() {
    const auto begin = steady_clock::now();
    const std::string reply = Ask(Get("/health"));
    EXPECT_EQ(StatusOf(reply), 200) << reply;
    EXPECT_EQ(BodyOf(reply), R"({"status":"ok"})");
    EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(10));  // Not hung.
  }
  // Until no request is left in the engine.
  bool EngineEmpties() {
    for (int i = 0; i < 2000; ++i) {
      const engine::EngineSnapshot now = engine_->Snapshot();
      if (now.metrics.requests == 0 && now.metrics.cache.live_blocks == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  std::string log() {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }

  base::ThreadTeam team_{1};
  std::unique_ptr<tokenizer::CharacterTokenizer> tokenizer_;
  std::unique_ptr<model::Gpt2Model> model_;
  std::unique_ptr<ModelService> service_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::uint16_t port_ = 0;
  std::mutex log_mutex_;
  std::string log_;
};

TEST_F(ServerTest, AnswersEveryEndpoint) {
  Start();
  const std::pair<std::string, std::string> cases[] = {
      {Get("/"), "<html"},
      {Get("/health"), "ok"},
      {Get("/ready"), "ready"},
      {Get("/metrics"), "kvasir_steps"},
      {Get("/v1/models"), R"("id":"tiny")"},
      {Get("/v1/models/tiny"), R"("context_length":128)"},
      {Post("/tokenize", R"({"text":"春风"})"), R"("count":2)"},
      {Post("/detokenize", R"({"tokens":[]})"), R"({"text":""})"},
      {Post("/v1/completions", R"({"model":"tiny","prompt":"春风","max_tokens":3,"seed":1})"),
       R"("completion_tokens":3)"},
      {Post("/v1/chat/completions",
            R"({"model":"tiny","messages":[{"role":"user","content":"春"}],"max_tokens":3})"),
       R"("role":"assistant")"},
      {Post("/kvasir/next", R"({"prompt":"春","top":3})"), R"("object":"next_tokens")"},
      {Get("/kvasir/cache"), R"("object":"cache")"},
  };
  for (const auto& [request, expected] : cases) {
    const std::string reply = Ask(request);
    EXPECT_EQ(StatusOf(reply), 200) << request << reply;
    if (expected != "kvasir_steps") {
      EXPECT_NE(reply.find(expected), std::string::npos) << request << reply;
    }
    EXPECT_EQ(reply.find("Server:"), std::string::npos);
  }
}

TEST_F(ServerTest, KeepsAConnectionForManyRequestsAlsoPipelined) {
  Start();
  Client client(port_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(Get("/health")));
    EXPECT_EQ(StatusOf(client.ReceiveReply()), 200);
    ASSERT_TRUE(client.Send(Get("/nothing")));
    EXPECT_EQ(StatusOf(client.ReceiveReply()), 404);
  }
  const std::string ask =
      Post("/v1/completions", R"({"model":"tiny","prompt":"春","max_tokens":2})");
  ASSERT_TRUE(client.Send(ask + ask + Get("/v1/models", "Connection: close\r\n")));
  const std::string all = client.ReceiveUntil("vocab_size");
  std::size_t replies = 0;
  for (std::size_t at = 0; (at = all.find("HTTP/1.1 200", at)) != std::string::npos; ++at)
    ++replies;
  EXPECT_EQ(replies, 3u) << all;
}

TEST_F(ServerTest, StreamsEventsInOrderAndEndsWithDone) {
  Start();
  const std::string whole =
      Ask(Post("/v1/completions",
               R"({"model":"tiny","prompt":"春风","max_tokens":40,"seed":3,"temperature":1.5})"));
  Client client(port_);
  client.Send(Post(
      "/v1/completions",
      R"({"model":"tiny","prompt":"春风","max_tokens":40,"seed":3,"temperature":1.5,"stream":true,)"
      R"("stream_options":{"include_usage":true}})"));
  const std::string reply = client.ReceiveUntil("0\r\n\r\n");
  EXPECT_NE(reply.find("Content-Type: text/event-stream"), std::string::npos);
  EXPECT_NE(reply.find("Transfer-Encoding: chunked"), std::string::npos);
  EXPECT_NE(reply.find("data: [DONE]\n\n"), std::string::npos);
  EXPECT_NE(reply.find(R"("choices":[],"usage":{"prompt_tokens":2,"completion_tokens":40)"),
            std::string::npos);
  std::string text;
  for (std::size_t at = 0; (at = reply.find("\"text\":\"", at)) != std::string::npos;) {
    at += 8;
    text += reply.substr(at, reply.find("\",\"logprobs\"", at) - at);
  }
  EXPECT_NE(whole.find("\"text\":\"" + text + "\""), std::string::npos) << text << whole;
}

TEST_F(ServerTest, EchoScoresAPromptWithoutWritingAnything) {
  Start();
  for (int turn = 0; turn < 2; ++turn) {  // The second time from the cache.
    const std::string reply =
        Ask(Post("/v1/completions",
                 R"({"model":"tiny","prompt":"春风花","max_tokens":0,"echo":true,"logprobs":0})"));
    EXPECT_NE(reply.find(R"("text":"春风花")"), std::string::npos) << reply;
    EXPECT_NE(reply.find(R"("token_logprobs":[null,-)"), std::string::npos) << reply;
    EXPECT_NE(reply.find(R"("completion_tokens":0)"), std::string::npos) << reply;
  }
}

TEST_F(ServerTest, RefusesBadRequestsAndStaysHealthy) {
  Start();
  const std::string deep = "{\"model\":" + std::string(50000, '[');
  std::string flood;
  for (int i = 0; i < 5000; ++i) flood += "X-H" + std::to_string(i) + ": y\r\n";
  const std::pair<int, std::string> cases[] = {
      {400, Post("/v1/completions", "")},
      {400, Post("/v1/completions", "{")},
      {400, Post("/v1/completions", "[1]")},
      {400, Post("/v1/completions", deep)},
      {400, Post("/v1/completions", R"({"model":"tiny","model":"tiny","prompt":"a"})")},
      {400, Post("/v1/completions", R"({"model":"tiny","prompt":5})")},
      {400, Post("/v1/completions", R"({"model":"tiny","prompt":"a","nonsense":1})")},
      {400, Post("/v1/completions", "{\"model\":\"tiny\",\"prompt\":\"\xFF\xFE\"}")},
      {400, Post("/v1/completions", R"({"model":"tiny","prompt":"a","temperature":1e400})")},
      {400, Post("/v1/completions", R"({"model":"tiny","prompt":"\ud800"})")},
      {404, Post("/v1/completions", R"({"model":"gpt-4","prompt":"a"})")},
      {404, Get("/v1/models/gpt-4")},
      {404, Get("/%2e%2e/etc/passwd")},
      {405, Get("/v1/completions")},
      {405, "DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
      {405, "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://x\r\n\r\n"},
      {403, "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n"},
      {415,
       "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
       "Content-Length: 2\r\n\r\n{}"},
      {413, Post("/v1/completions", std::string(3 * 1024 * 1024, 'x'))},
      {431, Get("/health", flood)},
      {431, Get("/" + std::string(100000, 'x'))},
      {400, "nonsense\r\n\r\n"},
      {400, "GET / HTTP/9.9\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n"},
      {400,
       "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
       "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {400,
       "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
       "Transfer-Encoding: chunked\r\n\r\nzz\r\n"},
      {400, std::string("\0\x01\x02\r\n\r\n", 7)},
  };
  for (const auto& [status, request] : cases) {
    const std::string reply = Ask(request);
    EXPECT_EQ(StatusOf(reply), status) << request.substr(0, 200) << "\n→ " << reply;
    EXPECT_NE(reply.find(R"({"error":{"message":")"), std::string::npos) << reply;
    ExpectHealthy();
  }
}

TEST_F(ServerTest, ReadsOverAHundredMegabytesToSayTheyAreTooMany) {
  Start();
  Client client(port_);
  client.Send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: 104857600\r\n\r\n");
  const std::string block(1 << 20, 'x');
  bool sent = true;
  for (int i = 0; i < 100 && sent; ++i) sent = client.Send(block);
  EXPECT_EQ(StatusOf(client.ReceiveReply()), 413);
  ExpectHealthy();
}

TEST_F(ServerTest, HalfRequests) {
  Start();
  const std::string halves[] = {
      "GET /hea",
      Get("/health").substr(0, 30),
      Post("/tokenize", R"({"text":"abc"})").substr(0, 100),
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 50\r\n\r\n{\"text\":",
  };
  for (const std::string& half : halves) {
    Client client(port_);
    client.Send(half);
    client.EndSending();
    EXPECT_EQ(StatusOf(client.ReceiveReply()), 400) << half;
    ExpectHealthy();
  }
  Client silent(port_);  // Says nothing, leaves.
  silent.Close();
  ExpectHealthy();
}

TEST_F(ServerTest, SlowSendersAreCutOff) {
  Start({.idle_seconds = 0.3, .request_seconds = 0.3});
  Client slow(port_);
  slow.Send("GET /health HTTP/1.1\r\nHost: lo");
  EXPECT_EQ(StatusOf(slow.ReceiveReply()), 408);
  Client idle(port_);
  EXPECT_EQ(idle.Receive(), "");  // Closed without a word.
  ExpectHealthy();
}

TEST_F(ServerTest, ContinueIsSaidBeforeALongBody) {
  Start();
  Client client(port_);
  client.Send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Expect: 100-continue\r\nContent-Length: 12\r\n\r\n");
  EXPECT_TRUE(client.ReceiveUntil("\r\n\r\n").starts_with("HTTP/1.1 100 "));
  client.Send(R"({"text":"a"})");
  EXPECT_EQ(StatusOf(client.ReceiveReply()), 200);
}

TEST_F(ServerTest, VanishedClientsCancelTheirRequests) {
  Start({}, {}, 20000);
  const std::string body = R"({"model":"tiny","prompt":"春","max_tokens":19000,"temperature":2)";
  for (const bool stream : {false, true}) {
    for (int i = 0; i < 3; ++i) {
      Client client(port_);
      client.Send(Post("/v1/completions", body + (stream ? ",\"stream\":true}" : ",\"n\":2}")));
      if (stream) {
        EXPECT_NE(client.ReceiveUntil("data: "), "");
      } else {
        while (engine_->Snapshot().metrics.requests == 0) std::this_thread::yield();
      }
      client.Close();
      EXPECT_TRUE(EngineEmpties());
      ExpectHealthy();
    }
  }
  Stop();
  EXPECT_NE(log().find(" 499 "), std::string::npos) << log();
}

TEST_F(ServerTest, SlowReadersLoseTheirAnswerNotTheServer) {
  Start({.max_unsent_bytes = 20000, .write_seconds = 30}, {}, 60000);
  Client client(port_);
  client.Send(Post("/v1/completions",
                   R"({"model":"tiny","prompt":"春","max_tokens":59000,"logprobs":20,)"
                   R"("stream":true})"));
  // It reads nothing. Buffers of the system fill up, then the limit does.
  EXPECT_TRUE(EngineEmpties());
  ExpectHealthy();
}

TEST_F(ServerTest, AFullQueueSaysWhenToComeBack) {
  engine::SchedulerOptions engine_options;
  engine_options.work.max_batch = 1;
  engine_options.waiting.requests = 1;
  Start({}, engine_options, 20000);
  const std::string ask =
      Post("/v1/completions", R"({"model":"tiny","prompt":"春","max_tokens":19000,"stream":true})");
  Client first(port_);
  first.Send(ask);
  EXPECT_NE(first.ReceiveUntil("data: "), "");
  Client second(port_);
  second.Send(ask);
  while (engine_->Snapshot().metrics.requests < 2) std::this_thread::yield();
  const std::string reply = Ask(ask);
  EXPECT_EQ(StatusOf(reply), 429) << reply;
  EXPECT_NE(reply.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_NE(reply.find("rate_limit_error"), std::string::npos);
  first.Close();
  second.Close();
  EXPECT_TRUE(EngineEmpties());
}

TEST_F(ServerTest, KeysAreAskedForExceptOfWhatTellsNothing) {
  auto keys = ApiKeys::Parse("0123456789abcdef\n", "f");
  ASSERT_TRUE(keys);
  Start({.keys = keys.value()});
  EXPECT_EQ(StatusOf(Ask(Get("/v1/models"))), 401);
  EXPECT_EQ(StatusOf(Ask(Get("/metrics", "Authorization: Bearer 0123456789abcdeF\r\n"))), 401);
  EXPECT_EQ(StatusOf(Ask(Get("/v1/models", "Authorization: Bearer 0123456789abcdef\r\n"))), 200);
  EXPECT_EQ(StatusOf(Ask(Get("/health"))), 200);
  EXPECT_EQ(StatusOf(Ask(Get("/"))), 200);
  EXPECT_EQ(StatusOf(Ask(Post("/v1/completions", "{}"))), 401);
}

TEST_F(ServerTest, OtherOriginsOnlyWhereTheyAreAllowed) {
  Start({.cors_origin = "http://a.example"});
  const std::string preflight = Ask(
      "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a.example\r\n\r\n");
  EXPECT_EQ(StatusOf(preflight), 204);
  EXPECT_NE(preflight.find("Access-Control-Allow-Origin: http://a.example\r\n"), std::string::npos);
  EXPECT_EQ(Ask(Get("/health", "Origin: http://b.example\r\n")).find("Access-Control"),
            std::string::npos);
  Stop();
  Start();
  EXPECT_EQ(Ask(Get("/health", "Origin: http://a.example\r\n")).find("Access-Control"),
            std::string::npos);
}

TEST_F(ServerTest, ConnectionsOverTheLimitAreTold) {
  Start({.max_connections = 2});
  Client one(port_);
  Client two(port_);
  one.Send(Get("/health"));
  two.Send(Get("/health"));
  EXPECT_EQ(StatusOf(one.ReceiveReply()), 200);
  EXPECT_EQ(StatusOf(two.ReceiveReply()), 200);
  Client three(port_);
  EXPECT_EQ(StatusOf(three.ReceiveReply()), 503);
  one.Close();
  for (int i = 0; i < 200; ++i) {
    if (StatusOf(Ask(Get("/health"))) == 200) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL() << "no connection was let in after one had left";
}

TEST_F(ServerTest, StoppingLetsAnswersEnd) {
  Start({.drain_seconds = 60});
  Client client(port_);
  client.Send(
      Post("/v1/completions", R"({"model":"tiny","prompt":"春","max_tokens":100,"stream":true})"));
  std::string all = client.ReceiveUntil("data: ");
  server_->Stop();
  all += client.ReceiveUntil("0\r\n\r\n");
  EXPECT_NE(all.find("data: [DONE]\n\n"), std::string::npos) << all;
  EXPECT_EQ(all.find("shutting down"), std::string::npos);
  thread_.join();
}

TEST_F(ServerTest, StoppingEndsLongAnswersCleanlyWithAnError) {
  Start({.drain_seconds = 0.2}, {}, 60000);
  Client stream(port_);
  const std::string ask = R"({"model":"tiny","prompt":"春","max_tokens":59000)";
  stream.Send(Post("/v1/completions", ask + ",\"stream\":true}"));
  EXPECT_NE(stream.ReceiveUntil("data: "), "");
  Client whole(port_);
  whole.Send(Post("/v1/completions", ask + "}"));
  while (engine_->Snapshot().metrics.requests < 2) std::this_thread::yield();
  server_->Stop();
  const std::string rest = stream.ReceiveUntil("0\r\n\r\n");
  EXPECT_NE(rest.find("the server is shutting down"), std::string::npos);
  EXPECT_NE(rest.find("data: [DONE]\n\n"), std::string::npos);
  EXPECT_EQ(StatusOf(whole.ReceiveReply()), 503);
  thread_.join();
  EXPECT_FALSE(Client(port_).connected());
}

TEST_F(ServerTest, LogsSayNothingOfPromptsKeysOrQueries) {
  Start();
  Ask(Post("/v1/completions", R"({"model":"tiny","prompt":"春风花月","max_tokens":2})"));
  Ask(Get("/health?secret=1", "Authorization: Bearer hush\r\n"));
  Ask(Get("/whatever"));
  Stop();
  const std::string lines = log();
  EXPECT_NE(lines.find("POST completions 200"), std::string::npos) << lines;
  EXPECT_NE(lines.find("prompt=4 cached=0 completion=2"), std::string::npos) << lines;
  EXPECT_NE(lines.find("none 404"), std::string::npos) << lines;
  for (const char* secret : {"春", "secret", "hush", "whatever"}) {
    EXPECT_EQ(lines.find(secret), std::string::npos) << secret;
  }
}

TEST_F(ServerTest, ManyClientsAtOnceGetWhatOneGetsAlone) {
  Start();
  std::vector<std::string> requests;
  std::vector<std::string> alone;
  for (int i = 0; i < 24; ++i) {
    requests.push_back(Post("/v1/completions",
                            R"({"model":"tiny","prompt":"春风","max_tokens":30,"temperature":1.5,)"
                            R"("logprobs":2,"stream":true,"seed":)" +
                                std::to_string(i) + "}",
                            "Connection: close\r\n"));
    Client client(port_);
    client.Send(requests.back());
    alone.push_back(BodyOf(client.ReceiveUntil("0\r\n\r\n")));
    EXPECT_NE(alone.back().find("[DONE]"), std::string::npos);
  }
  const auto events = [](const std::string& chunked) {  // Without the sizes of chunks.
    std::string text;
    for (std::size_t at = 0; (at = chunked.find("data: ", at)) != std::string::npos;) {
      const std::size_t end = chunked.find("\n\n", at);
      text += chunked.substr(at, end - at) + "\n";
      at = end;
    }
    return text;
  };
  std::atomic<int> same = 0;
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    clients.emplace_back([&, i] {
      Client client(port_);
      client.Send(requests[i]);
      same += events(BodyOf(client.ReceiveUntil("0\r\n\r\n"))) == events(alone[i]) ? 1 : 0;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(same, 24);
}

TEST(ServerOptions, AddressesThatAreNone) {
  const auto tokenizer = engine::TokenizerOf("ab");
  const auto model = engine::TinyGpt2(tokenizer->vocabulary().size(), 16);
  const auto service = ModelService::Make(*model, *tokenizer, {.id = "m"});
  base::ThreadTeam team(1);
  const auto engine = engine::Engine::Make(*model, tokenizer->vocabulary(), team, {});
  ASSERT_TRUE(service && engine);
  EXPECT_EQ(Server::Make(*service.value(), *engine.value(), {.host = "nowhere"}).error().code,
            base::ErrorCode::kUsage);
  const auto one = Server::Make(*service.value(), *engine.value(), {.port = 0});
  ASSERT_TRUE(one);
  EXPECT_TRUE(one.value()->address().starts_with("127.0.0.1:"));
  const auto two = Server::Make(*service.value(), *engine.value(), {.port = one.value()->port()});
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, base::ErrorCode::kIo);
}

}  // namespace
}  // namespace kvasir::server
