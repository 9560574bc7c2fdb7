// StopMatcher: ends a text before the first stop string, wherever token borders fall.
#ifndef KVASIR_SAMPLING_STOP_STRINGS_H_
#define KVASIR_SAMPLING_STOP_STRINGS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kvasir::sampling {

// Fed with the pieces of a generated text (never the prompt), it returns the text that is certain
// and holds back only what could begin a stop string. The stop string that completes first ends the
// text, whatever the order of the list; of those that complete at one byte, the longest. Neither it
// nor anything after it is returned. How the text is cut into pieces changes nothing in the whole.
// Works on bytes; when the pieces and the stop strings are whole characters, so is what is
// returned. Single-threaded; time per byte is at most proportional to the number of stop strings
// (amortised).
class StopMatcher {
 public:
  // No stop strings: everything is certain at once. kUsage for an empty stop string.
  static base::Result<StopMatcher> Create(std::vector<std::string> stops);

  // The next piece of text; returns what became certain. After a stop: ignored, returns nothing.
  std::string Feed(std::string_view piece);

  // The text has ended without a stop: returns what was held back.
  std::string Finish();

  // Whether a stop string has completed, and which one.
  bool stopped() const { return stopped_; }
  const std::string& matched() const { return matched_; }  // empty before

  // Bytes held back.
  std::size_t held_bytes() const { return held_.size(); }

 private:
  struct Stop {
    std::string text;
    std::vector<std::size_t> border;  // [size]: longest proper border of each prefix (KMP)
    std::size_t length = 0;           // of the longest prefix that is a suffix of the text so far
  };

  explicit StopMatcher(std::vector<Stop> stops) : stops_(std::move(stops)) {}

  // Moves one stop on by a byte; returns how many bytes of it now match.
  static std::size_t Advance(Stop& stop, char byte);

  std::vector<Stop> stops_;
  std::string held_;  // Invariant: after Feed, the longest stops_[i].length bytes of the text.
  std::string matched_;
  bool stopped_ = false;
};

}  // namespace kvasir::sampling

#endif  // KVASIR_SAMPLING_STOP_STRINGS_H_
