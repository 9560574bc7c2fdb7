#include "cli/text_flags.h"

namespace kvasir::cli {

CLI::Option* AddTexts(CLI::App* command, const std::string& flags, std::vector<std::string>& texts,
                      const std::string& help) {
  CLI::Option* option = command->add_option(flags, texts, help);
  const bool positional = flags.front() != '-';
  if (positional) {
    // CLI11 gives an argument to the first option that lacks some, or that may have extra ones; the
    // latter would also take brackets apart. TakeAll makes it content with fewer.
    constexpr int kMany = 1 << 20;
    option->expected(kMany)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    option->option_text("TEXT...");
  } else {
    option->type_name("TEXT");
  }
  return option->allow_extra_args(false);
}

}  // namespace kvasir::cli
