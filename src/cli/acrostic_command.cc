// kvasir acrostic HEADS: a line for each given head.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "cli/command.h"
#include "cli/poem_generation.h"
#include "constraints/acrostic.h"

namespace kvasir::cli {
namespace {

struct AcrosticFlags {
  PoemFlags poem;
  std::string heads;
  std::string chars = "7";
};

base::Result<int> RunAcrostic(const AcrosticFlags& flags) {
  if (flags.chars != "5" && flags.chars != "7") {
    return base::MakeError(base::ErrorCode::kUsage, "--chars is '{}': it must be 5 or 7",
                           base::ReplaceInvalidUtf8(flags.chars));
  }
  const std::size_t chars = flags.chars == "5" ? 5 : 7;
  KV_TRY(const auto rules, constraints::MakeVerseRules(flags.poem.rules));
  KV_TRY(const OpenModel open, Open(flags.poem.model));
  KV_TRY(auto form, constraints::MakeAcrosticMatcher(open.loaded.tokenizer->vocabulary(),
                                                     flags.heads, chars, rules));
  return RunPoems(open, flags.poem, std::move(form), {{"heads", flags.heads}, {"chars", chars}},
                  /*line_breaks=*/true);
}

}  // namespace

void AddAcrosticCommand(CommandSet& commands) {
  auto flags = std::make_shared<AcrosticFlags>();
  CLI::App* command = commands.Add("acrostic", "A poem whose lines begin with the given characters",
                                   "kvasir acrostic 春眠不觉 --chars 5 --seed 7");
  AddPoemFlags(command, flags->poem);
  command
      ->add_option("HEADS", flags->heads,
                   "one Chinese character for each line; one that the model's vocabulary lacks is "
                   "written as its bytes")
      ->required()
      ->type_name("TEXT");
  command->add_option("--chars", flags->chars, "characters in a line: 5 or 7; default 7")
      ->type_name("N");
  commands.OnRun(command, [flags] { return RunAcrostic(*flags); });
}

}  // namespace kvasir::cli
