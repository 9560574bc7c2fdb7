// Which poems have the regular shape that the corpus keeps.
#ifndef KVASIR_CORPUS_VERSE_SHAPE_H_
#define KVASIR_CORPUS_VERSE_SHAPE_H_

#include <cstdint>
#include <string_view>

namespace kvasir::corpus {

// Han characters as the corpus counts them: U+3400–U+9FFF and U+20000–U+2FFFF. Neither 〇 (U+3007)
// nor the compatibility forms at U+F900 are among them.
bool IsCorpusHan(std::uint32_t code_point);

// True if poem is 4 or 8 lines, all of 5 or all of 7 Han characters, ended in turn by ， and 。,
// and nothing else. Text that is not UTF-8 is not regular. Thread-safe.
bool IsRegularVerse(std::string_view poem);

}  // namespace kvasir::corpus

#endif  // KVASIR_CORPUS_VERSE_SHAPE_H_
