// Stop strings from hostile bytes: lines before the last are stops, the last is the text. Cutting
// the text into pieces must not change the outcome, and it must be the obvious one.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "sampling/stop_strings.h"

namespace {

std::string MatchInPieces(const std::vector<std::string>& stops, std::string_view text,
                          std::size_t piece_bytes) {
  auto matcher = kvasir::sampling::StopMatcher::Create(stops).value();
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += piece_bytes) {
    out += matcher.Feed(text.substr(i, piece_bytes));
  }
  return out + matcher.Finish();
}

std::string Obvious(const std::vector<std::string>& stops, std::string_view text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (stop.size() > longest && text.substr(0, end).ends_with(stop)) longest = stop.size();
    }
    if (longest > 0) return std::string(text.substr(0, end - longest));
  }
  return std::string(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.size() > 4096) return 0;  // The obvious way is slow.
  std::vector<std::string> stops;
  bool empty_stop = false;
  for (std::size_t end = input.find('\n'); end != std::string_view::npos; end = input.find('\n')) {
    stops.emplace_back(input.substr(0, end));
    empty_stop = empty_stop || end == 0;
    input.remove_prefix(end + 1);
  }
  KV_CHECK(kvasir::sampling::StopMatcher::Create(stops).has_value() == !empty_stop);
  if (empty_stop) return 0;
  const std::string expected = Obvious(stops, input);
  for (std::size_t piece : {std::size_t{1}, std::size_t{3}, input.size() + 1}) {
    KV_CHECK(MatchInPieces(stops, input, piece) == expected);
  }
  return 0;
}
