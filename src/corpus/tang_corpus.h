// The lesson's corpus: regulated verse of the Complete Tang Poems, one poem a line.
//
// Source: the npm package chinese-poetry 2.0.1, files dist/quantangshi/poet.tang.N.json: JSON
// arrays of poems, each an object whose "paragraphs" is an array of strings in traditional script.
#ifndef KVASIR_CORPUS_TANG_CORPUS_H_
#define KVASIR_CORPUS_TANG_CORPUS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "corpus/corpus_counts.h"

namespace kvasir::corpus {

// Poem i (from 0, of those kept) is held out when its remainder is this one.
inline constexpr std::size_t kHeldOutPeriod = 50;
inline constexpr std::size_t kHeldOutRemainder = 7;

constexpr bool IsHeldOut(std::size_t poem) { return poem % kHeldOutPeriod == kHeldOutRemainder; }

struct TangCorpus {
  std::vector<std::string> poems;  // Simplified, UTF-8, no newline; in the package's order.
  std::uint64_t files_read = 0;
  std::uint64_t poems_read = 0;  // = poems.size() + irregular + repeats.
  std::uint64_t irregular = 0;   // Not of the shape that IsRegularVerse (verse_shape.h) keeps.
  std::uint64_t repeats = 0;     // Equal to an earlier poem that was kept.
};

// A corpus as text: a newline after each poem.
struct CorpusTexts {
  std::string all;
  std::string train;
  std::string val;  // The poems held out.
};

struct CorpusFile {
  std::string path;
  CorpusCounts counts;
};

struct CorpusFiles {
  CorpusFile all;
  CorpusFile train;
  CorpusFile val;
};

// Reads the unpacked package in package_dir: files in ascending N, a poem's paragraphs joined,
// simplified by OpenCC's opencc_config, irregular poems and exact repeats dropped. Errors: kIo for
// what cannot be read, kBadData (with the file, and the offset or poem) for what is not such a
// package, and for one without a single regular poem. Thread-safe.
base::Result<TangCorpus> ReadTangCorpus(base::Env& env, const std::string& package_dir,
                                        const std::string& opencc_config = "t2s.json");

CorpusTexts SplitTangCorpus(const TangCorpus& corpus);

// Writes tang.txt, tang.train.txt and tang.val.txt into dir (made if missing), each whole or not at
// all, replacing older ones. kBadData if corpus has no poem. Thread-safe.
base::Result<CorpusFiles> WriteTangCorpus(base::Env& env, const TangCorpus& corpus,
                                          const std::string& dir);

}  // namespace kvasir::corpus

#endif  // KVASIR_CORPUS_TANG_CORPUS_H_
