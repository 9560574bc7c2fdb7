// LogWriter: lines to a stream that may be slow, without waiting for it.
#ifndef KVASIR_CLI_LOG_WRITER_H_
#define KVASIR_CLI_LOG_WRITER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace kvasir::cli {

// Writes on a thread of its own. Where the stream takes nothing for long, lines are dropped, and
// counted in the log. Thread-safe.
class LogWriter {
 public:
  explicit LogWriter(std::FILE* stream);
  // Writes what is left.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void Write(std::string_view line);

 private:
  void Loop();

  std::FILE* const stream_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string waiting_;      // Lines, each with its newline.
  std::size_t dropped_ = 0;  // Since the last one written.
  bool stopping_ = false;
  std::thread thread_;  // Last: it uses all the others.
};

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_LOG_WRITER_H_
