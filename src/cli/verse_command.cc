// kvasir verse --form FORM: a poem of exactly that form.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/poem_generation.h"
#include "constraints/verse_form.h"

namespace kvasir::cli {
namespace {

struct VerseFlags {
  PoemFlags poem;
  std::string form;
  std::optional<std::string> heads;
};

base::Result<int> RunVerse(const VerseFlags& flags) {
  KV_TRY(const auto form, constraints::ParseVerseForm(flags.form));
  KV_TRY(const auto rules, constraints::MakeVerseRules(flags.poem.rules));
  KV_TRY(const OpenModel open, Open(flags.poem.model));
  KV_TRY(auto matcher, constraints::MakeVerseMatcher(open.loaded.tokenizer->vocabulary(), form,
                                                     flags.heads, rules));
  return RunPoems(open, flags.poem, std::move(matcher),
                  {{"form", flags.form}, {"heads", flags.heads.value_or("")}},
                  /*line_breaks=*/false);
}

}  // namespace

void AddVerseCommand(CommandSet& commands) {
  auto flags = std::make_shared<VerseFlags>();
  CLI::App* command =
      commands.Add("verse", "A poem of a fixed form of regulated verse",
                   "kvasir verse --form qijue --tones --rhyme --best-of 8 --seed 7");
  AddPoemFlags(command, flags->poem);
  command
      ->add_option("--form", flags->form,
                   "wujue (4 lines of 5), qijue (4 of 7), wulv (8 of 5) or qilv (8 of 7)")
      ->required()
      ->type_name("FORM");
  command
      ->add_option("--heads", flags->heads,
                   "one Chinese character for each line, all in the model's vocabulary")
      ->type_name("TEXT");
  commands.OnRun(command, [flags] { return RunVerse(*flags); });
}

}  // namespace kvasir::cli
