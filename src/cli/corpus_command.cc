// kvasir corpus tang SRC -o DIR: the lesson's texts from the published collection.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/env.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "corpus/tang_corpus.h"

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

base::Result<int> RunCorpus(const CorpusFlags& flags) {
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

}  // namespace

void AddCorpusCommand(CommandSet& commands) {
  auto flags = std::make_shared<CorpusFlags>();
  CLI::App* command =
      commands.Add("corpus", "Make tang.txt, tang.train.txt and tang.val.txt from chinese-poetry",
                   "kvasir corpus tang node_modules/chinese-poetry -o data");
  command->add_option("KIND", flags->kind, "which corpus: tang")
      ->required()
      ->check(CLI::IsMember({"tang"}));
  command->add_option("SRC", flags->source, "the unpacked npm package chinese-poetry 2.0.1")
      ->required();
  command->add_option("-o,--out", flags->out, "the folder to write to")->required();
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunCorpus(*flags); });
}

}  // namespace kvasir::cli
