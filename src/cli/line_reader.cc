#include "cli/line_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <cstring>
#include <utility>

#if defined(KVASIR_LIBEDIT)
#include <editline/readline.h>
#endif

namespace kvasir::cli {
namespace {

constexpr std::size_t kMaxLine = std::size_t{1} << 20;  // bytes

#if defined(KVASIR_LIBEDIT)

// Characters of several bytes are edited whole only under a locale of UTF-8.
void UseUtf8() {
  const char* chosen = std::setlocale(LC_CTYPE, "");
  if (chosen == nullptr ||
      (std::strstr(chosen, "UTF-8") == nullptr && std::strstr(chosen, "utf8") == nullptr)) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

std::optional<std::string> ReadEdited(const char* prompt) {
  char* typed = readline(prompt);
  if (typed == nullptr) return std::nullopt;
  std::string line(typed);
  std::free(typed);
  const HIST_ENTRY* last =
      history_length > 0 ? history_get(history_base + history_length - 1) : nullptr;
  if (!line.empty() && (last == nullptr || line != last->line)) add_history(line.c_str());
  return line;
}

#endif

}  // namespace

LineReader::LineReader(std::FILE* in) : in_(in), interactive_(isatty(fileno(in)) != 0) {
#if defined(KVASIR_LIBEDIT)
  if (!interactive_) return;
  UseUtf8();
  rl_instream = in;
  rl_outstream = stderr;
  using_history();
#endif
}

base::Result<std::optional<std::string>> LineReader::Read(const char* prompt) {
#if defined(KVASIR_LIBEDIT)
  if (interactive_ && isatty(STDERR_FILENO) != 0) {
    auto line = ReadEdited(prompt);
    if (line && line->size() > kMaxLine) {
      return base::MakeError(base::ErrorCode::kUsage, "a line may hold at most {} bytes", kMaxLine);
    }
    return line;
  }
#endif
  if (interactive_) fmt::print(stderr, "{}", prompt);
  return ReadPlain();
}

base::Result<std::optional<std::string>> LineReader::ReadPlain() {
  std::string line;
  int c = std::getc(in_);
  if (c == EOF && std::ferror(in_) == 0) return std::optional<std::string>();
  bool too_long = false;
  for (; c != EOF && c != '\n'; c = std::getc(in_)) {
    too_long = too_long || line.size() == kMaxLine;
    if (!too_long) line.push_back(static_cast<char>(c));
  }
  if (std::ferror(in_) != 0) return base::MakeError(base::ErrorCode::kIo, "cannot read a line");
  if (too_long) {
    return base::MakeError(base::ErrorCode::kUsage, "a line may hold at most {} bytes", kMaxLine);
  }
  if (line.ends_with('\r')) line.pop_back();
  return std::optional(std::move(line));
}

}  // namespace kvasir::cli
