// A client that costs little: many requests for streamed completions at once, over loopback, and
// when their events came. What it takes of the machine it tells, since it shares it with the
// server.
//
//     stream_load --port P [--timed FILE] [--load FILE (--at-once N | --rate R)]
//                 [--seconds S] [--poll-ms M]
//
// A FILE holds one request body a line. Those of --timed are begun at once, and the time of each of
// their events is told; those of --load are begun one after another for S seconds, so that N are
// open, or R a second whatever becomes of them, and are counted. Timed streams run to their ends,
// or, where there is a load, until it ends. --poll-ms: looks at the sockets only so often (an event
// counts when it is read), as a client that is not the bottleneck: on two cores it takes almost
// none of them.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr std::string_view kTokenMark = "\"finish_reason\":null";
constexpr std::string_view kEndMark = "data: [DONE]";

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void Fail(std::string_view what) {
  fmt::print(stderr, "stream_load: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

struct Flags {
  std::uint16_t port = 0;
  std::string timed, load;
  std::size_t at_once = 0;
  double rate = 0;
  double seconds = 0;
  double poll_ms = 0;
};

Flags ReadFlags(int argc, char** argv) {
  std::map<std::string_view, const char*> given;
  for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
  const auto number = [&](std::string_view name) {
    return given.contains(name) ? std::atof(given[name]) : 0.0;
  };
  const auto text = [&](std::string_view name) { return given.contains(name) ? given[name] : ""; };
  return {.port = static_cast<std::uint16_t>(number("--port")),
          .timed = text("--timed"),
          .load = text("--load"),
          .at_once = static_cast<std::size_t>(number("--at-once")),
          .rate = number("--rate"),
          .seconds = number("--seconds"),
          .poll_ms = number("--poll-ms")};
}

// The requests of a file, ready to be sent.
std::vector<std::string> ReadRequests(const std::string& path) {
  std::vector<std::string> requests;
  if (path.empty()) return requests;
  std::ifstream file(path);
  if (!file) Fail(path);
  for (std::string body; std::getline(file, body);) {
    requests.push_back(
        fmt::format("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                    body.size(), body));
  }
  if (requests.empty()) Fail(path + " holds no request");
  return requests;
}

// Counts a text in bytes that come in pieces.
class Counter {
 public:
  explicit Counter(std::string_view mark) : mark_(mark) {}
  std::size_t Feed(std::string_view bytes) {
    tail_ += bytes;
    std::size_t count = 0;
    std::size_t from = 0;
    for (std::size_t at; (at = tail_.find(mark_, from)) != std::string::npos; ++count) {
      from = at + mark_.size();
    }
    tail_.erase(0, std::max(from, tail_.size() - std::min(tail_.size(), mark_.size() - 1)));
    return count;
  }

 private:
  std::string_view mark_;
  std::string tail_;
};

class Stream {
 public:
  Stream(std::uint16_t port, const std::string& request) : begin(Now()) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (socket_ < 0) Fail("socket");
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      Fail("connect");
    }
    std::string_view left = request;
    while (!left.empty()) {
      const ssize_t sent = send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;  // Refused while it was being sent: the reply says so.
      left.remove_prefix(static_cast<std::size_t>(sent));
    }
    fcntl(socket_, F_SETFL, O_NONBLOCK);
  }
  ~Stream() { close(socket_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int socket() const { return socket_; }
  // False once the server has ended it.
  bool Read() {
    static char buffer[1 << 16];
    while (true) {
      const ssize_t count = recv(socket_, buffer, sizeof(buffer), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
      if (count <= 0) return false;
      const std::string_view bytes(buffer, static_cast<std::size_t>(count));
      if (head_.size() < kHead) head_ += bytes.substr(0, kHead - head_.size());
      times.insert(times.end(), tokens_.Feed(bytes), Now());
      whole = whole || ends_.Feed(bytes) > 0;
      if (bytes.size() < sizeof(buffer)) return true;
    }
  }
  int status() const { return head_.size() < kHead ? 0 : std::atoi(head_.c_str() + 9); }

  const double begin;
  std::vector<double> times;  // When each token's event was read.
  bool whole = false;         // It ended as it should.

 private:
  static constexpr std::size_t kHead = 12;  // "HTTP/1.1 200"
  int socket_ = -1;
  std::string head_;
  Counter tokens_{kTokenMark};
  Counter ends_{kEndMark};
};

class Load {
 public:
  explicit Load(Flags flags) : flags_(std::move(flags)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) Fail("epoll_create1");
  }

  void Run() {
    const std::vector<std::string> timed = ReadRequests(flags_.timed);
    const std::vector<std::string> load = ReadRequests(flags_.load);
    begin_ = Now();
    for (const std::string& request : timed) {
      timed_.push_back(std::make_unique<Stream>(flags_.port, request));
      Watch(*timed_.back());
    }
    while (load.empty() ? open_.size() > 0 : Now() < begin_ + flags_.seconds) {
      while (!load.empty() && Wanted()) Begin(load[sent_ % load.size()]);
      Wait();
    }
    end_ = Now();
  }

  std::string Report() const {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    std::string streams;
    for (const auto& stream : timed_) {
      streams += fmt::format("{}{{\"status\":{},\"whole\":{},\"begin\":{:.6f},\"times\":[",
                             streams.empty() ? "" : ",", stream->status(), stream->whole,
                             stream->begin - begin_);
      for (std::size_t i = 0; i < stream->times.size(); ++i) {
        streams += fmt::format("{}{:.6f}", i == 0 ? "" : ",", stream->times[i] - begin_);
      }
      streams += "]}";
    }
    return fmt::format(
        "{{\"seconds\":{:.6f},\"client_cpu_seconds\":{:.6f},\"sent\":{},\"finished\":{},"
        "\"refused\":{},\"other\":{},\"streams\":[{}]}}",
        end_ - begin_, seconds(usage.ru_utime) + seconds(usage.ru_stime), sent_, finished_,
        refused_, other_, streams);
  }

 private:
  bool Wanted() const {
    if (flags_.rate > 0) {
      return static_cast<double>(sent_) < (Now() - begin_) * flags_.rate;
    }
    return loading_.size() < flags_.at_once;
  }

  void Begin(const std::string& request) {
    auto stream = std::make_unique<Stream>(flags_.port, request);
    Watch(*stream);
    const int socket = stream->socket();
    loading_.emplace(socket, std::move(stream));
    ++sent_;
  }

  void Watch(Stream& stream) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = stream.socket();
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, stream.socket(), &event) != 0) Fail("epoll_ctl");
    open_[stream.socket()] = &stream;
  }

  void Read(Stream& stream) {
    if (stream.Read()) return;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, stream.socket(), nullptr);
    open_.erase(stream.socket());
    const auto counted = loading_.find(stream.socket());
    if (counted == loading_.end()) return;
    ++(stream.status() == 200 && stream.whole ? finished_
       : stream.status() == 429               ? refused_
                                              : other_);
    loading_.erase(counted);
  }

  void Wait() {
    if (flags_.poll_ms > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(flags_.poll_ms));
      std::vector<Stream*> streams;
      for (const auto& [socket, stream] : open_) streams.push_back(stream);
      for (Stream* stream : streams) Read(*stream);
      return;
    }
    epoll_event events[256];
    const int count = epoll_wait(epoll_, events, static_cast<int>(std::size(events)), 1);
    for (int i = 0; i < count; ++i) Read(*open_.at(events[i].data.fd));
  }

  const Flags flags_;
  const int epoll_;
  double begin_ = 0;
  double end_ = 0;
  std::vector<std::unique_ptr<Stream>> timed_;
  std::map<int, std::unique_ptr<Stream>> loading_;  // By socket.
  std::map<int, Stream*> open_;                     // By socket, of both kinds.
  std::size_t sent_ = 0;
  std::size_t finished_ = 0;
  std::size_t refused_ = 0;
  std::size_t other_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = ReadFlags(argc, argv);
  const bool has_load = !flags.load.empty();
  if (flags.port == 0 || (flags.timed.empty() && !has_load) ||
      has_load != (flags.at_once > 0 || flags.rate > 0) || (has_load && flags.seconds <= 0)) {
    fmt::print(stderr,
               "usage: stream_load --port P [--timed FILE] [--load FILE (--at-once N | --rate R) "
               "--seconds S] [--poll-ms M]\n");
    return 2;
  }
  Load load(flags);
  load.Run();
  fmt::print("{}\n", load.Report());
  return 0;
}
