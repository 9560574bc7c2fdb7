// Which documents of a person's texts are held out to measure with.
#ifndef KVASIR_TRAINING_SPLIT_H_
#define KVASIR_TRAINING_SPLIT_H_

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace kvasir::training {

// What was drawn whole, coarsest first.
enum class DocumentUnit {
  kFile,
  kParagraph,  // Lines up to a blank one.
  kLine,
  kEnd,  // Nothing was drawn: the end of the text was cut off.
};
std::string_view DocumentUnitName(DocumentUnit unit);  // "files", "paragraphs", "lines", "the end"

struct SplitOptions {
  double share = 0.05;  // Of the bytes, 0 to 1: what is held out at most.
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();  // Likewise.
  std::uint64_t seed = 1;
};

struct TextSplit {
  std::string text, held_out;  // Documents in the order of the files; together every byte of them.
  DocumentUnit unit = DocumentUnit::kEnd;
  std::uint64_t documents = 0;           // Of that unit, in all texts; 0 for kEnd.
  std::uint64_t held_out_documents = 0;  // Likewise.
};

// Holds out whole documents, of the coarsest unit that comes in at least 20 and of which between
// half of the share and the whole fits; else the end of the text, from a line's start where it has
// one. A document is drawn by the seed and its own content (blanks at its ends do not count), so
// copies of one are on the same side, and neither the order nor the names of files matter; those
// that would exceed the share are passed over. No cut parts the bytes of a character. Requires
// UTF-8. Thread-safe.
TextSplit SplitTexts(std::span<const std::string> files, const SplitOptions& options);

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_SPLIT_H_
