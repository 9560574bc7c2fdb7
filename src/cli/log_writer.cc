#include "cli/log_writer.h"

#include <fmt/format.h>

#include <utility>

namespace kvasir::cli {
namespace {

constexpr std::size_t kMostWaiting = std::size_t{1} << 20;  // bytes

}  // namespace

LogWriter::LogWriter(std::FILE* stream) : stream_(stream), thread_([this] { Loop(); }) {}

LogWriter::~LogWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void LogWriter::Write(std::string_view line) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + line.size() > kMostWaiting) {
      ++dropped_;
      return;
    }
    if (dropped_ > 0) waiting_ += fmt::format("{} lines dropped\n", std::exchange(dropped_, 0));
    waiting_ += line;
    waiting_ += '\n';
  }
  wake_.notify_one();
}

void LogWriter::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::string lines = std::exchange(waiting_, {});
    lock.unlock();
    // Where the stream itself fails there is nobody left to tell.
    std::fwrite(lines.data(), 1, lines.size(), stream_);
    std::fflush(stream_);
    lock.lock();
  }
}

}  // namespace kvasir::cli
