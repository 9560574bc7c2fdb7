#include "corpus/tang_corpus.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "corpus/simplifier.h"
#include "corpus/verse_shape.h"

namespace kvasir::corpus {
namespace {

using base::Error;
using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::string_view kPoemFolder = "dist/quantangshi";
constexpr std::string_view kPrefix = "poet.tang.";
constexpr std::string_view kSuffix = ".json";

struct PoemFile {
  std::uint64_t number;
  std::string path;
};

Error NotAPackage(const std::string& package_dir, std::string_view why) {
  return base::WithHint(
      MakeError(ErrorCode::kBadData,
                "'{}' is not an unpacked chinese-poetry package: {} (looked for {}/{}N{})",
                package_dir, why, kPoemFolder, kPrefix, kSuffix),
      "npm pack chinese-poetry@2.0.1 && tar xf chinese-poetry-2.0.1.tgz, then name the folder "
      "'package'");
}

// N of poet.tang.N.json. Leading zeros are refused, so that no two names mean one N.
bool ParsePoemFileName(std::string_view name, std::uint64_t& number) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  if (name.size() <= kPrefix.size() + kSuffix.size()) return false;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  if (name.size() > 1 && name[0] == '0') return false;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size();
}

// The poem files in ascending N (1000 before 10000: by number, not by name).
Result<std::vector<PoemFile>> ListPoemFiles(const std::string& package_dir) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path root(package_dir);
  if (!fs::is_directory(root, error)) {
    return NotAPackage(package_dir, fs::exists(root, error) ? "not a folder" : "no such folder");
  }
  const fs::path folder = root / kPoemFolder;
  if (!fs::is_directory(folder, error)) return NotAPackage(package_dir, "it has no such folder");
  std::vector<PoemFile> files;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::uint64_t number = 0;
    if (ParsePoemFileName(entry->path().filename().native(), number)) {
      files.push_back({number, entry->path().native()});
    }
  }
  if (error) {
    return MakeError(ErrorCode::kIo, "cannot list '{}': {}", folder.native(), error.message());
  }
  if (files.empty()) return NotAPackage(package_dir, "it has no such file");
  std::sort(files.begin(), files.end(),
            [](const PoemFile& a, const PoemFile& b) { return a.number < b.number; });
  return files;
}

Result<nlohmann::json> ParseJson(const std::string& path, std::string_view text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    // e.byte counts from 1 and includes the byte that was refused.
    return MakeError(ErrorCode::kBadData, "'{}' is not valid JSON: refused at offset {} of {}",
                     path, e.byte == 0 ? 0 : e.byte - 1, text.size());
  } catch (const nlohmann::json::exception&) {  // The only other one that parsing throws.
    return MakeError(ErrorCode::kBadData, "'{}' holds a number that is out of range", path);
  }
}

// The paragraphs of one poem, joined.
Result<std::string> JoinParagraphs(const std::string& path, std::size_t index,
                                   const nlohmann::json& poem) {
  const auto bad = [&] {
    return MakeError(ErrorCode::kBadData,
                     "'{}': poem {} is not an object whose \"paragraphs\" is an array of strings",
                     path, index);
  };
  if (!poem.is_object()) return bad();
  const auto paragraphs = poem.find("paragraphs");
  if (paragraphs == poem.end() || !paragraphs->is_array()) return bad();
  std::string joined;
  for (const nlohmann::json& paragraph : *paragraphs) {
    if (!paragraph.is_string()) return bad();
    joined += paragraph.get_ref<const std::string&>();
  }
  return joined;
}

// Appends the poems of one file to corpus; seen holds those kept so far.
Result<void> ReadPoemFile(base::Env& env, const std::string& path, const Simplifier& simplifier,
                          std::unordered_set<std::string>& seen, TangCorpus& corpus) {
  KV_TRY(const auto file, env.Map(path));
  KV_TRY(const nlohmann::json poems, ParseJson(path, file->text()));
  if (!poems.is_array()) {
    return MakeError(ErrorCode::kBadData, "'{}' holds {}, not an array of poems", path,
                     poems.type_name());
  }
  for (std::size_t i = 0; i < poems.size(); ++i) {
    KV_TRY(const std::string traditional, JoinParagraphs(path, i, poems[i]));
    KV_TRY(std::string poem, simplifier.Convert(traditional));
    ++corpus.poems_read;
    if (!IsRegularVerse(poem)) {
      ++corpus.irregular;
    } else if (!seen.insert(poem).second) {
      ++corpus.repeats;
    } else {
      corpus.poems.push_back(std::move(poem));
    }
  }
  ++corpus.files_read;
  return base::Success();
}

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
  KV_TRY(const std::vector<PoemFile> files, ListPoemFiles(package_dir));
  KV_TRY(const Simplifier simplifier, Simplifier::Open(opencc_config));
  TangCorpus corpus;
  std::unordered_set<std::string> seen;
  for (const PoemFile& file : files) {
    KV_TRY(ReadPoemFile(env, file.path, simplifier, seen, corpus));
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
    (i % kHeldOutPeriod == kHeldOutRemainder ? texts.val : texts.train) += line;
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
