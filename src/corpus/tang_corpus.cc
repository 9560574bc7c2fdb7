#include "corpus/tang_corpus.h"

#include <filesystem>
#include <unordered_set>
#include <utility>

#include "corpus/poem_package.h"
#include "corpus/simplifier.h"
#include "corpus/verse_shape.h"

namespace kvasir::corpus {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

Result<CorpusFile> WriteText(base::Env& env, const std::string& dir, const char* name,
                             const std::string& text) {
  KV_TRY(const CorpusCounts counts, CountCorpus(text));
  CorpusFile file{(std::filesystem::path(dir) / name).native(), counts};
  KV_TRY(base::WriteFileAtomic(env, file.path, text));
  return file;
}

}  // namespace

Result<TangCorpus> ReadTangCorpus(base::Env& env, const std::string& package_dir,
                                  const std::string& opencc_config) {
  KV_TRY(const std::vector<PoemFile> files, ListPoemFiles(package_dir, "tang"));
  KV_TRY(const Simplifier simplifier, Simplifier::Open(opencc_config));
  TangCorpus corpus;
  std::unordered_set<std::string> seen;
  for (const PoemFile& file : files) {
    KV_TRY(std::vector<std::string> poems, ReadPoemFile(env, file.path, simplifier));
    ++corpus.files_read;
    corpus.poems_read += poems.size();
    for (std::string& poem : poems) {
      if (!IsRegularVerse(poem)) {
        ++corpus.irregular;
      } else if (!seen.insert(poem).second) {
        ++corpus.repeats;
      } else {
        corpus.poems.push_back(std::move(poem));
      }
    }
  }
  if (corpus.poems.empty()) {
    return MakeError(ErrorCode::kBadData,
                     "none of the {} poems in '{}' is 4 or 8 lines of 5 or 7 Han characters",
                     corpus.poems_read, package_dir);
  }
  return corpus;
}

CorpusTexts SplitTangCorpus(const TangCorpus& corpus) {
  CorpusTexts texts;
  for (std::size_t i = 0; i < corpus.poems.size(); ++i) {
    const std::string line = corpus.poems[i] + "\n";
    texts.all += line;
    (IsHeldOut(i) ? texts.val : texts.train) += line;
  }
  return texts;
}

Result<CorpusFiles> WriteTangCorpus(base::Env& env, const TangCorpus& corpus,
                                    const std::string& dir) {
  if (corpus.poems.empty()) {
    return MakeError(ErrorCode::kBadData, "a corpus without a poem is not written to '{}'", dir);
  }
  const CorpusTexts texts = SplitTangCorpus(corpus);
  KV_TRY(env.MakeDirectories(dir));
  KV_TRY(CorpusFile all, WriteText(env, dir, "tang.txt", texts.all));
  KV_TRY(CorpusFile train, WriteText(env, dir, "tang.train.txt", texts.train));
  KV_TRY(CorpusFile val, WriteText(env, dir, "tang.val.txt", texts.val));
  return CorpusFiles{std::move(all), std::move(train), std::move(val)};
}

}  // namespace kvasir::corpus
