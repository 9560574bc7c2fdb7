// kvasir demo: the lesson, on the bundled model.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "base/env.h"
#include "base/thread_team.h"
#include "cli/command.h"
#include "cli/demo.h"
#include "cli/demo_texts.h"
#include "cli/generation.h"
#include "cli/number_flags.h"
#include "cli/stdout_stream.h"
#include "corpus/corpus_counts.h"

namespace kvasir::cli {
namespace {

struct DemoFlags {
  ModelFlags model;
  std::string language = "en";
  std::string corpus;  // Empty: $KVASIR_CORPUS, else none.
  std::uint64_t seed = 7;
};

std::string CorpusPath(const DemoFlags& flags) {
  if (!flags.corpus.empty()) return flags.corpus;
  const char* from_environment = std::getenv("KVASIR_CORPUS");
  return from_environment == nullptr ? "" : from_environment;
}

template <typename... Args>
void PrintFilled(std::string_view text, const Args&... args) {
  PrintParagraph(fmt::format(fmt::runtime(text), args...));
}

base::Result<void> PrintOpening(const Demo& demo, const std::string& corpus_path) {
  const DemoTexts& texts = demo.texts();
  const model::ModelShape& shape = demo.open.loaded.model->shape();
  fmt::print("{}\n\n", texts.title);
  PrintFilled(texts.model, shape.layers, shape.embedding, shape.heads, demo.Integer(shape.context),
              demo.Integer(shape.vocab), demo.Integer(shape.parameters));
  PrintFilled(texts.seed, demo.seed);
  if (corpus_path.empty()) {
    PrintParagraph(texts.no_corpus);
    return base::Success();
  }
  auto counts = corpus::CountCorpus(demo.corpus);
  if (!counts) {
    base::Error error = counts.error();
    error.message = fmt::format("'{}': {}", corpus_path, error.message);
    return error;
  }
  if (counts.value().characters == 0) {
    return base::MakeError(base::ErrorCode::kBadData, "'{}' is empty: a corpus is needed",
                           corpus_path);
  }
  PrintFilled(texts.corpus, corpus_path, demo.Integer(counts.value().lines),
              demo.Integer(counts.value().characters));
  return base::Success();
}

base::Result<int> RunDemo(const DemoFlags& flags) {
  KV_TRY(const DemoLanguage language, ParseDemoLanguage(flags.language));
  KV_TRY(const OpenModel open, Open(flags.model));
  base::ThreadTeam one(1);
  Demo demo = {open,     GeneratorOptionsOf(open, flags.model),
               language, flags.seed,
               {},       flags.model.threads == 0 ? &one : open.team.get()};
  const std::string corpus_path = CorpusPath(flags);
  std::unique_ptr<base::FileBytes> corpus;
  if (!corpus_path.empty()) {
    KV_TRY(corpus, base::Env::Default().Map(corpus_path));
    demo.corpus = corpus->text();
  }
  KV_TRY(PrintOpening(demo, corpus_path));
  for (const auto section :
       {ShowNextTables, ShowTemperatures, ShowFilters, ShowOpenings, ShowForms}) {
    KV_TRY(section(demo));
    KV_TRY(FlushStdout());
  }
  KV_TRY(const bool equal, ShowCache(demo));
  fmt::print("\n{}\n", demo.texts().end);
  return equal ? 0 : 1;
}

}  // namespace

void AddDemoCommand(CommandSet& commands) {
  auto flags = std::make_shared<DemoFlags>();
  CLI::App* command = commands.Add("demo", "The lesson: probabilities, sampling, forms, the cache",
                                   "kvasir demo --lang de");
  AddModelFlags(command, flags->model);
  command->remove_option(command->get_option("--kv"));  // The lesson is about the full cache.
  command->add_option("--lang", flags->language, "en, de or zh; default en")->type_name("LANG");
  command
      ->add_option("--corpus", flags->corpus,
                   "tang.txt, to count in and to find runs in; default: $KVASIR_CORPUS")
      ->type_name("FILE");
  AddUint(command, "--seed", flags->seed, {}, "fixes every draw; default 7");
  commands.OnRun(command, [flags] { return RunDemo(*flags); });
}

}  // namespace kvasir::cli
