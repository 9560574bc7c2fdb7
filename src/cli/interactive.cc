#include "cli/interactive.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/stdout_stream.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kMaxLine = std::size_t{1} << 20;  // bytes

constexpr const char* kHelp =
    "A line you type is added to the text, and the model goes on from there.\n"
    "An empty line: go on. /new: start over. /text: show all of it. /quit: end.\n";

// The next line without its newline; nothing at the end. kUsage if it is longer than kMaxLine (the
// rest of it is skipped), kIo if it cannot be read.
base::Result<std::optional<std::string>> ReadLine(std::FILE* in) {
  std::string line;
  int c = std::getc(in);
  if (c == EOF && std::ferror(in) == 0) return std::optional<std::string>();
  bool too_long = false;
  for (; c != EOF && c != '\n'; c = std::getc(in)) {
    too_long = too_long || line.size() == kMaxLine;
    if (!too_long) line.push_back(static_cast<char>(c));
  }
  if (std::ferror(in) != 0) return base::MakeError(base::ErrorCode::kIo, "cannot read a line");
  if (too_long) {
    return base::MakeError(base::ErrorCode::kUsage, "a line may hold at most {} bytes", kMaxLine);
  }
  if (line.ends_with('\r')) line.pop_back();
  return std::optional(std::move(line));
}

}  // namespace

base::Result<int> RunInteractive(std::FILE* in, std::string text, const ContinueText& next) {
  const bool person = isatty(fileno(in)) != 0;
  if (person) fmt::print(stderr, "{}", kHelp);
  while (true) {
    if (person) fmt::print(stderr, "> ");
    const auto read = ReadLine(in);
    if (!read) {
      if (read.error().code == base::ErrorCode::kIo) return read.error();
      PrintError(read.error());
      continue;
    }
    if (!read.value() || *read.value() == "/quit") return 0;
    const std::string& line = *read.value();
    if (line == "/new") {
      text.clear();
    } else if (line == "/text") {
      fmt::print("{}\n", text);
    } else if (auto more = next(text + line); more) {
      text += line + more.value();
      fmt::print("\n");
    } else {
      PrintError(more.error());
    }
    KV_TRY(FlushStdout());
  }
}

}  // namespace kvasir::cli
