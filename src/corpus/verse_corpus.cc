#include "corpus/verse_corpus.h"

#include <filesystem>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "corpus/copy_filter.h"
#include "corpus/poem_package.h"
#include "corpus/simplifier.h"
#include "corpus/verse_shape.h"

namespace kvasir::corpus {
namespace {

using base::Result;

using Characters = std::unordered_set<std::string_view>;

bool HasOnly(const Characters& characters, std::string_view poem) {
  for (const std::string_view c : base::SplitCharacters(poem)) {
    if (!characters.contains(c)) return false;
  }
  return true;
}

// The Song poems of the package. seen: the Tang poems; characters: theirs.
Result<void> ReadSong(base::Env& env, const std::string& package_dir,
                      const std::string& opencc_config, const CopyFilter& copies,
                      std::unordered_set<std::string> seen, const Characters& characters,
                      VerseCorpus& corpus) {
  KV_TRY(const std::vector<PoemFile> files, ListPoemFiles(package_dir, "song"));
  KV_TRY(const Simplifier simplifier, Simplifier::Open(opencc_config));
  for (const PoemFile& file : files) {
    KV_TRY(std::vector<std::string> poems, ReadPoemFile(env, file.path, simplifier));
    ++corpus.song_files_read;
    corpus.song_poems_read += poems.size();
    for (std::string& poem : poems) {
      if (!IsRegularVerse(poem)) {
        ++corpus.song_irregular;
      } else if (!seen.insert(poem).second) {
        ++corpus.song_repeats;
      } else if (!HasOnly(characters, poem)) {
        ++corpus.song_strange;
      } else if (copies.IsNearCopy(poem)) {
        ++corpus.song_near_copies;
      } else {
        corpus.song.push_back(std::move(poem));
      }
    }
  }
  return base::Success();
}

Result<CorpusFile> WritePoems(base::Env& env, const std::string& dir, const char* name,
                              const std::vector<std::string>& poems) {
  std::string text;
  for (const std::string& poem : poems) text += poem + "\n";
  KV_TRY(const CorpusCounts counts, CountCorpus(text));
  CorpusFile file{(std::filesystem::path(dir) / name).native(), counts};
  KV_TRY(base::WriteFileAtomic(env, file.path, text));
  return file;
}

}  // namespace

Result<VerseCorpus> ReadVerseCorpus(base::Env& env, const std::string& package_dir,
                                    const std::string& opencc_config) {
  KV_TRY(const TangCorpus all, ReadTangCorpus(env, package_dir, opencc_config));
  VerseCorpus corpus;
  for (std::size_t i = 0; i < all.poems.size(); ++i) {
    (IsHeldOut(i) ? corpus.held_out : corpus.tang).push_back(all.poems[i]);
  }
  const CopyFilter copies(corpus.held_out);
  corpus.tang_near_copies =
      std::erase_if(corpus.tang, [&](const std::string& poem) { return copies.IsNearCopy(poem); });
  Characters characters;
  for (const std::string& poem : all.poems) {
    for (const std::string_view c : base::SplitCharacters(poem)) characters.insert(c);
  }
  KV_TRY(ReadSong(env, package_dir, opencc_config, copies, {all.poems.begin(), all.poems.end()},
                  characters, corpus));
  return corpus;
}

Result<VerseCorpusFiles> WriteVerseCorpus(base::Env& env, const VerseCorpus& corpus,
                                          const std::string& dir) {
  KV_TRY(env.MakeDirectories(dir));
  KV_TRY(CorpusFile tang, WritePoems(env, dir, "verse.tang.txt", corpus.tang));
  KV_TRY(CorpusFile song, WritePoems(env, dir, "verse.song.txt", corpus.song));
  KV_TRY(CorpusFile val, WritePoems(env, dir, "verse.val.txt", corpus.held_out));
  return VerseCorpusFiles{std::move(tang), std::move(song), std::move(val)};
}

}  // namespace kvasir::corpus
