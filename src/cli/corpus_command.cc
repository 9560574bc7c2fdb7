// kvasir corpus tang|verse SRC -o DIR: the bundled models' texts from the published collection.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/env.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "corpus/copy_filter.h"
#include "corpus/tang_corpus.h"
#include "corpus/verse_corpus.h"

namespace kvasir::cli {
namespace {

struct CorpusFlags {
  std::string kind;
  std::string source;
  std::string out;
  bool json = false;
};

constexpr const char* kSpringWind = "春风";
constexpr const char* kSpringWindStop = "春风。";

nlohmann::ordered_json ToJson(const corpus::CorpusFile& file) {
  return {{"path", file.path},
          {"poems", file.counts.lines},
          {"characters", file.counts.characters},
          {"distinct_characters", file.counts.distinct_characters}};
}

void PrintFile(const corpus::CorpusFile& file) {
  fmt::print("{}: {} poems, {} characters, {} different\n", file.path, file.counts.lines,
             file.counts.characters, file.counts.distinct_characters);
}

base::Result<int> RunTang(const CorpusFlags& flags) {
  base::Env& env = base::Env::Default();
  KV_TRY(const auto corpus, corpus::ReadTangCorpus(env, flags.source));
  const std::string all = corpus::SplitTangCorpus(corpus).all;
  KV_TRY(const auto files, corpus::WriteTangCorpus(env, corpus, flags.out));
  const auto phrase = corpus::CountPhrase(all, kSpringWind);
  const auto phrase_stop = corpus::CountPhrase(all, kSpringWindStop);
  if (flags.json) {
    PrintJson({{"files_read", corpus.files_read},
               {"poems_read", corpus.poems_read},
               {"irregular", corpus.irregular},
               {"repeats", corpus.repeats},
               {"poems", corpus.poems.size()},
               {"held_out", files.val.counts.lines},
               {"distinct_characters", files.all.counts.distinct_characters},
               {"phrases", {{kSpringWind, phrase}, {kSpringWindStop, phrase_stop}}},
               {"all", ToJson(files.all)},
               {"train", ToJson(files.train)},
               {"val", ToJson(files.val)}});
    return 0;
  }
  fmt::print("{} files, {} poems read; {} not regular, {} repeated; {} kept\n", corpus.files_read,
             corpus.poems_read, corpus.irregular, corpus.repeats, corpus.poems.size());
  PrintFile(files.all);
  PrintFile(files.train);
  PrintFile(files.val);
  fmt::print("{} {} times, of these {} {} times\n", kSpringWind, phrase, kSpringWindStop,
             phrase_stop);
  return 0;
}

base::Result<int> RunVerse(const CorpusFlags& flags) {
  base::Env& env = base::Env::Default();
  KV_TRY(const auto corpus, corpus::ReadVerseCorpus(env, flags.source));
  KV_TRY(const auto files, corpus::WriteVerseCorpus(env, corpus, flags.out));
  if (flags.json) {
    PrintJson({{"tang_near_copies", corpus.tang_near_copies},
               {"song_files_read", corpus.song_files_read},
               {"song_poems_read", corpus.song_poems_read},
               {"song_irregular", corpus.song_irregular},
               {"song_repeats", corpus.song_repeats},
               {"song_strange", corpus.song_strange},
               {"song_near_copies", corpus.song_near_copies},
               {"tang", ToJson(files.tang)},
               {"song", ToJson(files.song)},
               {"val", ToJson(files.val)}});
    return 0;
  }
  fmt::print("Tang: {} poems kept, {} left out as near copies of the {} held-out ones\n",
             corpus.tang.size(), corpus.tang_near_copies, corpus.held_out.size());
  fmt::print(
      "Song: {} files, {} poems read; {} not regular, {} repeated, {} with a character that no "
      "Tang poem has, {} near copies; {} kept\n",
      corpus.song_files_read, corpus.song_poems_read, corpus.song_irregular, corpus.song_repeats,
      corpus.song_strange, corpus.song_near_copies, corpus.song.size());
  fmt::print(
      "near copy: {} characters in a row shared with a held-out poem, or 1 in {} of the {}s\n",
      corpus::kCopyRun, corpus::kCopyShare, corpus::kCopyPiece);
  PrintFile(files.tang);
  PrintFile(files.song);
  PrintFile(files.val);
  return 0;
}

}  // namespace

void AddCorpusCommand(CommandSet& commands) {
  auto flags = std::make_shared<CorpusFlags>();
  CLI::App* command =
      commands.Add("corpus", "Make the bundled models' texts from the package chinese-poetry",
                   "kvasir corpus tang node_modules/chinese-poetry -o data");
  command->add_option("KIND", flags->kind, "tang (the lesson's), or verse (Tang and Song)")
      ->required()
      ->check(CLI::IsMember({"tang", "verse"}));
  command->add_option("SRC", flags->source, "the unpacked npm package chinese-poetry 2.0.1")
      ->required();
  command->add_option("-o,--out", flags->out, "the folder to write to")->required();
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command,
                 [flags] { return flags->kind == "verse" ? RunVerse(*flags) : RunTang(*flags); });
}

}  // namespace kvasir::cli
