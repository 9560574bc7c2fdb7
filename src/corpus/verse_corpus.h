// The corpus of the Tang model: the Tang poems that tang_corpus.h trains on, and the Song poems of
// the same shapes, without what is nearly a held-out Tang poem.
#ifndef KVASIR_CORPUS_VERSE_CORPUS_H_
#define KVASIR_CORPUS_VERSE_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "corpus/tang_corpus.h"

namespace kvasir::corpus {

struct VerseCorpus {
  std::vector<std::string> tang;      // Training poems, in the package's order.
  std::vector<std::string> song;      // Likewise.
  std::vector<std::string> held_out;  // Exactly those of SplitTangCorpus.
  std::uint64_t tang_near_copies = 0;
  std::uint64_t song_files_read = 0;
  std::uint64_t song_poems_read = 0;  // = song.size() + the four below.
  std::uint64_t song_irregular = 0;   // Not of the shape that IsRegularVerse keeps.
  std::uint64_t song_repeats = 0;     // Equal to a Tang poem or to an earlier Song poem.
  std::uint64_t song_strange = 0;     // With a character that no Tang poem has.
  std::uint64_t song_near_copies = 0;
};

// Errors as for ReadTangCorpus. A poem counts under the first rule that drops it, in the order of
// the fields. Thread-safe.
base::Result<VerseCorpus> ReadVerseCorpus(base::Env& env, const std::string& package_dir,
                                          const std::string& opencc_config = "t2s.json");

struct VerseCorpusFiles {
  CorpusFile tang;
  CorpusFile song;
  CorpusFile val;
};

// Writes verse.tang.txt, verse.song.txt and verse.val.txt into dir (made if missing), each whole or
// not at all, replacing older ones. Thread-safe.
base::Result<VerseCorpusFiles> WriteVerseCorpus(base::Env& env, const VerseCorpus& corpus,
                                                const std::string& dir);

}  // namespace kvasir::corpus

#endif  // KVASIR_CORPUS_VERSE_CORPUS_H_
