// kvasir acrostic HEADS: a line for each given head.
#include <memory>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/number_flags.h"
#include "cli/poem_generation.h"
#include "constraints/acrostic.h"

namespace kvasir::cli {
namespace {

struct AcrosticFlags {
  PoemFlags poem;
  std::string heads;
  std::uint64_t chars = 7;
};

base::Result<int> RunAcrostic(const AcrosticFlags& flags) {
  if (flags.chars != 5 && flags.chars != 7) {
    return base::MakeError(base::ErrorCode::kUsage, "--chars is {}: a line has 5 or 7 characters",
                           flags.chars);
  }
  KV_TRY(const auto rules, constraints::MakeVerseRules(flags.poem.rules));
  KV_TRY(const OpenModel open, Open(flags.poem.model));
  KV_TRY(auto form,
         constraints::MakeAcrosticMatcher(open.loaded.tokenizer->vocabulary(), flags.heads,
                                          static_cast<std::size_t>(flags.chars), rules));
  return RunPoems(open, flags.poem, std::move(form),
                  {{"heads", flags.heads}, {"chars", flags.chars}}, /*line_breaks=*/true);
}

}  // namespace

void AddAcrosticCommand(CommandSet& commands) {
  auto flags = std::make_shared<AcrosticFlags>();
  CLI::App* command = commands.Add("acrostic", "A poem whose lines begin with the given characters",
                                   "kvasir acrostic 春眠不觉 --chars 5 --seed 7");
  AddPoemFlags(command, flags->poem);
  command->add_option("HEADS", flags->heads, "one Chinese character for each line")
      ->required()
      ->type_name("TEXT");
  AddUint(command, "--chars", flags->chars, {5, 7}, "characters in a line: 5 or 7; default 7");
  commands.OnRun(command, [flags] { return RunAcrostic(*flags); });
}

}  // namespace kvasir::cli
