#include "cli/turn_settings.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/terminal_text.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

// The option of this name without dashes, a long one or -n; null if there is none.
const CLI::Option* Find(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw("--" + name);
  return option != nullptr || name.size() != 1 ? option : app.get_option_no_throw("-" + name);
}

bool IsSwitch(const CLI::Option& option) { return option.get_expected_max() == 0; }
// Whether it may be given several times.
bool IsList(const CLI::Option& option) {
  const std::string& name = option.get_lnames().front();
  return name == "stop" || name == "ban" || name == "choice";
}

void Bind(CLI::App& app, GenerateFlags& flags) {
  app.set_help_flag();
  AddTurnFlags(&app, flags);
}

}  // namespace

base::Result<GenerateFlags> TurnSettings::Apply(const std::vector<Saying>& said) const {
  GenerateFlags made = start_;
  CLI::App app;
  Bind(app, made);
  std::vector<std::string> words;  // CLI11 takes them from the back.
  for (auto saying = said.rbegin(); saying != said.rend(); ++saying) {
    words.push_back("--" + saying->name + (saying->is_switch ? "" : "=" + saying->value));
  }
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return MakeError(ErrorCode::kUsage, "{}", error.what());
  }
  if (made.sampling.count > 1) {
    return MakeError(ErrorCode::kUsage, "/count is {}: a turn continues one text",
                     made.sampling.count);
  }
  return made;
}

base::Result<void> TurnSettings::Set(std::string_view line) {
  const std::size_t blank = line.find(' ');
  std::string name(line.substr(0, blank));
  const std::string value(blank == std::string_view::npos ? "" : line.substr(blank + 1));
  GenerateFlags unused;
  CLI::App app;
  Bind(app, unused);
  const CLI::Option* option = Find(app, name);
  if (option == nullptr) {
    return MakeError(ErrorCode::kUsage, "there is no /{}: /help lists what there is", name);
  }
  name = option->get_lnames().front();
  if (IsSwitch(*option) && !value.empty()) {
    return MakeError(ErrorCode::kUsage, "/{} is turned on and off: it takes no value", name);
  }
  std::vector<Saying> said = said_;
  const auto is_named = [&](const Saying& saying) { return saying.name == name; };
  const bool was_said = std::any_of(said.begin(), said.end(), is_named);
  if (value.empty() || !IsList(*option)) std::erase_if(said, is_named);
  if (IsSwitch(*option) ? !was_said : !value.empty()) {
    said.push_back({name, value, IsSwitch(*option)});
  }
  KV_TRY(flags_, Apply(said));
  said_ = std::move(said);
  return base::Success();
}

void TurnSettings::Reset() {
  flags_ = start_;
  said_.clear();
}

std::string TurnSettings::Said() const {
  std::string text;
  for (const Saying& saying : said_) {
    text += fmt::format("/{}{}\n", saying.name, saying.is_switch ? "" : " " + saying.value);
  }
  return text;
}

std::string TurnSettings::Help() {
  constexpr std::size_t kNameColumns = 26;
  GenerateFlags unused;
  CLI::App app;
  Bind(app, unused);
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().front() == "count") continue;  // A turn continues one text.
    std::string name = "/" + option->get_lnames().front();
    if (!IsSwitch(*option)) {
      const std::string type = option->get_type_name();
      name += " " + type.substr(0, type.find(":{"));  // CLI11 says a|b once more.
    }
    text += fmt::format("  {} {}\n", PadRight(name, kNameColumns), option->get_description());
  }
  return text;
}

}  // namespace kvasir::cli
