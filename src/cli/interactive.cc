#include "cli/interactive.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/generation.h"
#include "cli/line_reader.h"
#include "cli/number_flags.h"
#include "cli/prompt_source.h"
#include "cli/stdout_stream.h"
#include "cli/turn.h"
#include "cli/turn_settings.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

constexpr std::uint64_t kProbabilities = 8;

constexpr const char* kGreeting =
    "A line you type is added to the text, and the model goes on from there; an empty line: go "
    "on.\n"
    "/undo takes the last turn back, /probs shows its last token's probabilities, /temperature "
    "0.8\n"
    "sets that flag, /help tells of all, /quit or Ctrl-D ends, Ctrl-C ends a turn.\n";

constexpr const char* kHelp =
    "  /new                       start over with an empty text\n"
    "  /text                      show all of the text\n"
    "  /undo                      take the last turn back\n"
    "  /probs [K]                 the K (8) most probable tokens at the last one's place\n"
    "  /settings                  what has been set since the start\n"
    "  /reset                     all settings as at the start\n"
    "  /quit                      end; so does Ctrl-D\n"
    "A line that begins with two slashes is text that begins with one.\n"
    "Settings; without a value, as at the start:\n";

class Conversation {
 public:
  Conversation(std::string text, TurnSettings settings, TurnWriter writer)
      : text_(std::move(text)), settings_(std::move(settings)), writer_(std::move(writer)) {}

  // What a line asks for; "/quit" is not among it.
  base::Result<void> Take(std::string_view line) {
    if (line.starts_with("//")) return Continue(std::string(line.substr(1)));
    if (!line.starts_with("/")) return Continue(std::string(line));
    const std::size_t blank = line.find(' ');
    const std::string_view name = line.substr(1, blank == line.npos ? line.npos : blank - 1);
    const std::string_view value = blank == line.npos ? "" : line.substr(blank + 1);
    if (name == "probs") return ShowProbabilities(value);
    if (const Action* action = FindAction(name)) {
      if (!value.empty()) return MakeError(ErrorCode::kUsage, "/{} takes no value", name);
      return (this->*(action->run))();
    }
    return settings_.Set(line.substr(1));
  }

 private:
  struct Action {
    std::string_view name;
    base::Result<void> (Conversation::*run)();
  };

  static const Action* FindAction(std::string_view name) {
    static constexpr Action kActions[] = {{"help", &Conversation::Help},
                                          {"new", &Conversation::StartOver},
                                          {"text", &Conversation::ShowText},
                                          {"undo", &Conversation::Undo},
                                          {"settings", &Conversation::ShowSettings},
                                          {"reset", &Conversation::Reset}};
    for (const Action& action : kActions) {
      if (action.name == name) return &action;
    }
    return nullptr;
  }

  base::Result<void> Continue(const std::string& line) {
    KV_TRY(Turn turn, writer_.Write(text_, line, settings_.flags()));
    text_ = turn.after;
    turns_.push_back(std::move(turn));
    fmt::print("\n");
    return base::Success();
  }
  base::Result<void> ShowProbabilities(std::string_view value) {
    std::uint64_t k = kProbabilities;
    if (!value.empty()) {
      KV_TRY(k, ParseUint("/probs", value, {1, std::uint64_t{1} << 32}));
    }
    KV_TRY(const std::string table, writer_.Probabilities(turns_.empty() ? Turn() : turns_.back(),
                                                          static_cast<std::size_t>(k)));
    fmt::print("{}", table);
    return base::Success();
  }
  base::Result<void> Help() {
    fmt::print(stderr, "{}{}", kHelp, TurnSettings::Help());
    return base::Success();
  }
  base::Result<void> StartOver() {
    Turn nothing;  // Which /undo takes back as well.
    nothing.before = std::exchange(text_, {});
    turns_.push_back(std::move(nothing));
    return base::Success();
  }
  base::Result<void> ShowText() {
    fmt::print("{}\n", text_);
    return base::Success();
  }
  base::Result<void> Undo() {
    if (turns_.empty()) return MakeError(ErrorCode::kUsage, "there is no turn to take back");
    text_ = std::move(turns_.back().before);
    turns_.pop_back();
    return base::Success();
  }
  base::Result<void> ShowSettings() {
    fmt::print(stderr, "{}", settings_.Said());
    return base::Success();
  }
  base::Result<void> Reset() {
    settings_.Reset();
    return base::Success();
  }

  std::string text_;
  std::vector<Turn> turns_;
  TurnSettings settings_;
  TurnWriter writer_;
};

}  // namespace

base::Result<int> RunInteractive(const GenerateFlags& flags, std::FILE* in) {
  if (flags.json || flags.trace || flags.prompt.prompts_file || flags.sampling.count > 1) {
    return MakeError(ErrorCode::kUsage,
                     "-i continues one text: it does not go with --json, --trace, --count or "
                     "--prompts-file");
  }
  KV_TRY(const std::vector<Prompt> prompts, ReadPrompts(flags.prompt));
  KV_TRY(const OpenModel open, Open(flags.model));
  KV_TRY(auto writer, TurnWriter::Make(open, flags.model));
  GenerateFlags start = flags;
  start.sampling.seed = SeedOfRun(flags.sampling);
  Conversation conversation(prompts.front().text, TurnSettings(std::move(start)),
                            std::move(writer));
  LineReader lines(in);
  if (lines.interactive()) fmt::print(stderr, "{}", kGreeting);
  while (true) {
    const auto line = lines.Read("> ");
    if (!line && line.error().code == ErrorCode::kIo) return line.error();
    if (line && (!line.value() || *line.value() == "/quit")) return 0;
    const base::Result<void> done =
        line ? conversation.Take(*line.value()) : base::Result<void>(line.error());
    if (!done && done.error().code == ErrorCode::kIo) return done.error();
    if (!done) PrintError(done.error());
    KV_TRY(FlushStdout());
  }
}

}  // namespace kvasir::cli
