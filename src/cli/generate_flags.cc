#include "cli/generate_flags.h"

#include "cli/generate_session.h"
#include "cli/generation.h"
#include "cli/number_flags.h"
#include "cli/text_flags.h"
#include "engine/request.h"

namespace kvasir::cli {

void AddTurnFlags(CLI::App* command, GenerateFlags& flags) {
  AddUint(command, "-n,--max-tokens", flags.max_tokens, {.min = 1},
          "most tokens to generate; default 64");
  command
      ->add_option(
          "--overflow", flags.overflow,
          "at the end of the model's context: stop (default), or roll: go on from the last "
          "half of it and more")
      ->type_name("stop|roll")
      ->check(CLI::IsMember({"stop", "roll"}));
  AddSamplingFlags(command, flags.sampling);
  AddConstraintFlags(command, flags.constraint);
  AddTexts(command, "--stop", flags.stops, "end the text before this; may be repeated");
  AddUint(command, "--eos", flags.eos, {},
          "id of the token that ends a text; default: the model file's");
  command->add_flag("--ignore-eos", flags.ignore_eos, "never draw the end token");
  AddTexts(command, "--ban", flags.bans, "never draw tokens that hold this; may be repeated");
}

void AddGenerateFlags(CLI::App* command, GenerateFlags& flags) {
  AddModelFlags(command, flags.model);
  AddKvBudgetFlag(command, flags.model);
  AddPromptFlags(command, flags.prompt);
  AddTurnFlags(command, flags);
  AddUint(command, "--logprobs", flags.logprobs, {0, std::uint64_t{1} << 32},
          "report each token's log-probability and this many alternatives");
  AddUint(command, "--best-of", flags.best_of, {1, engine::kMaxChoices},
          "write so many for each text shown, the one most probable by token; default 1");
  command->add_flag("--echo", flags.echo,
                    "print the prompt first; with --logprobs its tokens' too, after the first");
  command->add_flag("--stream", flags.stream, "print as tokens come; with --json one line a token");
  command->add_flag("--trace", flags.trace,
                    "tell on stderr what each step computed, read and held");
  command->add_flag(
      "-i,--interactive", flags.interactive,
      "write a text in turns: your lines from standard input, the model's after each");
  command->add_flag("--json", flags.json, "one JSON document");
  AddSessionFlags(command, flags.session);
  AddStoreFlags(command, flags.store);
}

}  // namespace kvasir::cli
