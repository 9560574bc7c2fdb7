// Which poems are held-out poems, or nearly: a model that has read them is not measured by them.
//
// Compared are stretches of Han characters within a line, so that the form alone (，。 and line
// breaks) is no likeness.
#ifndef KVASIR_CORPUS_COPY_FILTER_H_
#define KVASIR_CORPUS_COPY_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kvasir::corpus {

// A poem is a near copy of a held-out one if they share kCopyRun characters in a row (a whole line
// of five, most of one of seven), or at least one in kCopyShare of the different kCopyPiece-grams
// of the poem that has fewer of them (lines whose characters were exchanged here and there).
inline constexpr std::size_t kCopyRun = 5;
inline constexpr std::size_t kCopyPiece = 3;
inline constexpr std::size_t kCopyShare = 5;

// Immutable; thread-safe.
class CopyFilter {
 public:
  // Texts that are not UTF-8 have no characters from the first fault on.
  explicit CopyFilter(std::span<const std::string> held_out);

  bool IsNearCopy(std::string_view poem) const;

 private:
  std::unordered_set<std::string> runs_;  // Of kCopyRun characters, UTF-8.
  // From a piece (the characters' code points, 21 bits each) to the poems that have it, ascending.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> poems_with_;
  std::vector<std::size_t> pieces_;  // Different pieces of each poem.
};

}  // namespace kvasir::corpus

#endif  // KVASIR_CORPUS_COPY_FILTER_H_
