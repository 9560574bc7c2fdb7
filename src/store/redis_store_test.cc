// Against Debian's redis-server on loopback, and against servers that are none.
#include "store/redis_store.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/test_directory.h"
#include "store/store_test_values.h"

namespace kvasir::store {
namespace {

using namespace std::chrono_literals;

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int Listen(int* port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  KV_CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  KV_CHECK(listen(fd, 8) == 0);
  KV_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  *port = ntohs(address.sin_port);
  return fd;
}

int FreePort() {
  int port = 0;
  close(Listen(&port));
  return port;
}

class RedisServer {
 public:
  explicit RedisServer(int port, const std::string& password = "") : port_(port) {
    child_ = fork();
    if (child_ == 0) {
      const std::string number = std::to_string(port);
      std::vector<const char*> arguments = {
          "redis-server", "--port", number.c_str(),           "--bind", "127.0.0.1",
          "--save",       "",       "--appendonly",           "no",     "--logfile",
          "/dev/null",    "--dir",  directory_.path().c_str()};
      if (!password.empty()) {
        arguments.push_back("--requirepass");
        arguments.push_back(password.c_str());
      }
      arguments.push_back(nullptr);
      execvp("redis-server", const_cast<char* const*>(arguments.data()));
      _exit(127);
    }
  }
  ~RedisServer() { Kill(); }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  // Whether it answers; waits for it.
  bool Starts() const {
    for (int i = 0; i < 1000; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address = Loopback(port_);
      const bool connected =
          connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
      close(fd);
      if (connected) return true;
      int status = 0;
      if (waitpid(child_, &status, WNOHANG) == child_) return false;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }
  void Signal(int number) const { kill(child_, number); }
  void Kill() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    kill(child_, SIGCONT);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  const base::TestDirectory directory_;
  const int port_;
  pid_t child_ = 0;
};

PutCounts PutAll(RedisStore& store, std::uint64_t count, std::size_t size) {
  std::vector<std::vector<std::byte>> values;
  std::vector<KeyValue> entries;
  for (std::uint64_t i = 0; i < count; ++i) values.push_back(TestValue(i, size));
  for (std::uint64_t i = 0; i < count; ++i) entries.push_back({TestKey(i), values[i]});
  const auto put = store.Put(entries);
  EXPECT_TRUE(put) << (put ? "" : put.error().message);
  return put ? put.value() : PutCounts{};
}

std::vector<BlockKey> Keys(std::uint64_t count) {
  std::vector<BlockKey> keys;
  for (std::uint64_t i = 0; i < count; ++i) keys.push_back(TestKey(i));
  return keys;
}

std::size_t CountRight(RedisStore& store, std::uint64_t count) {
  std::size_t right = 0;
  const auto got = store.Get(Keys(count), [&](std::size_t i, std::span<const std::byte> value) {
    right += IsTestValue(i, value) ? 1 : 0;
  });
  EXPECT_TRUE(got) << (got ? "" : got.error().message);
  return right;
}

TEST(RedisStoreTest, KeepsValuesForEveryClient) {
  const int port = FreePort();
  const RedisServer server(port);
  ASSERT_TRUE(server.Starts()) << "redis-server is needed";
  RedisStore first({.port = port});
  EXPECT_EQ(PutAll(first, 40, 100000).written, 40u);
  RedisStore second({.port = port});
  EXPECT_EQ(CountRight(second, 50), 40u);
  EXPECT_EQ(PutAll(second, 41, 100000).written, 1u);  // The others are there.
  const std::vector<BlockKey> keys = Keys(50);
  EXPECT_TRUE(first.Remove(std::span(keys).first(10)));
  const auto there = second.Has(keys);
  ASSERT_TRUE(there);
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(there.value()[i], i >= 10 && i <= 40) << i;
  RedisStore other({.port = port, .database = 1});
  EXPECT_EQ(CountRight(other, 50), 0u);
}

TEST(RedisStoreTest, NeedsThePasswordThatTheServerWants) {
  const int port = FreePort();
  const RedisServer server(port, "sesame");
  ASSERT_TRUE(server.Starts()) << "redis-server is needed";
  RedisStore knows({.port = port, .password = "sesame"});
  EXPECT_EQ(PutAll(knows, 3, 10).written, 3u);
  RedisStore wrong({.port = port, .password = "guess"});
  const auto refused = wrong.Has(Keys(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kIo);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("WRONGPASS"));
  RedisStore none({.port = port});
  EXPECT_FALSE(none.Has(Keys(1)));
}

TEST(RedisStoreTest, FaultsWhileTheServerIsDownAndGoesOnAfter) {
  const int port = FreePort();
  RedisStore store({.port = port, .timeout = 200ms});
  EXPECT_FALSE(store.Has(Keys(1)));  // Nobody listens.
  {
    const RedisServer server(port);
    ASSERT_TRUE(server.Starts()) << "redis-server is needed";
    EXPECT_EQ(PutAll(store, 5, 1000).written, 5u);
    EXPECT_EQ(CountRight(store, 5), 5u);
    server.Signal(SIGSTOP);  // Takes connections, but answers nothing.
    const auto begin = std::chrono::steady_clock::now();
    const auto slow = store.Get(Keys(5), [](std::size_t, std::span<const std::byte>) {});
    EXPECT_FALSE(slow);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 150ms);
    server.Signal(SIGCONT);
    EXPECT_EQ(CountRight(store, 5), 5u);
  }
  EXPECT_FALSE(store.Has(Keys(1)));
  const RedisServer again(port);
  ASSERT_TRUE(again.Starts()) << "redis-server is needed";
  EXPECT_EQ(CountRight(store, 5), 0u);
}

// Sends this to whoever connects, then closes.
void ExpectFault(const std::string& says) {
  int port = 0;
  const int listener = Listen(&port);
  std::thread server([&] {
    const int fd = accept(listener, nullptr, nullptr);
    (void)!write(fd, says.data(), says.size());
    shutdown(fd, SHUT_WR);
    char ignored[4096];
    while (read(fd, ignored, sizeof(ignored)) > 0) {
    }
    close(fd);
  });
  {
    RedisStore store({.port = port, .timeout = 2000ms});
    std::size_t visited = 0;
    const auto got =
        store.Get(Keys(2), [&](std::size_t, std::span<const std::byte>) { ++visited; });
    EXPECT_FALSE(got) << says;
    EXPECT_LE(visited, 1u);
  }
  server.join();
  close(listener);
}

TEST(RedisStoreTest, AServerThatSpeaksNonsenseIsAFault) {
  signal(SIGPIPE, SIG_IGN);
  for (const std::string& says :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string(":1\r\n:2\r\n"),
        std::string("-ERR no\r\n"), std::string("$5\r\nab"), std::string("$3\r\nabc\r\n"),
        std::string("*2\r\n+a\r\n+b\r\n"), std::string("$-9\r\n"), std::string(),
        std::string("\0\0\0", 3), std::string("$99999999999999999999\r\n")}) {
    ExpectFault(says);
  }
}

}  // namespace
}  // namespace kvasir::store
