// kvasir check: does a constraint accept a text? Judged by what masks tokens, byte by byte.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/constraint_flags.h"
#include "cli/json_output.h"
#include "cli/text_flags.h"
#include "constraints/verse_form.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using nlohmann::ordered_json;

struct CheckFlags {
  ConstraintFlags constraint;
  std::optional<std::string> form;
  std::vector<std::string> texts;
  bool json = false;
};

// A verse form as a regular expression: lines of Han characters, ， and 。 in turn.
base::Result<constraints::ConstraintSpec> SpecOfForm(const std::string& name) {
  KV_TRY(const auto form, constraints::ParseVerseForm(name));
  const constraints::VerseShape shape = constraints::ShapeOf(form);
  const std::string line = fmt::format("\\p{{Han}}{{{}}}", shape.chars);
  return constraints::ConstraintSpec{constraints::ConstraintKind::kRegex,
                                     {fmt::format("({0}，{0}。){{{1}}}", line, shape.lines / 2)}};
}

base::Result<constraints::ConstraintSpec> SpecOf(const CheckFlags& flags) {
  KV_TRY(auto spec, ConstraintOf(flags.constraint));
  if (flags.form.has_value() == spec.has_value()) {
    return MakeError(ErrorCode::kUsage,
                     "one of --regex, --json-schema, --grammar, --choice and --form is needed");
  }
  if (flags.form) return SpecOfForm(*flags.form);
  spec->json.outer_blanks = true;
  return std::move(*spec);
}

void PrintVerdict(const std::string& text, const constraints::TextVerdict& verdict) {
  const char* said = verdict.complete   ? "accepted"
                     : verdict.accepted ? "incomplete: more must follow"
                                        : "refused";
  if (verdict.accepted) {
    fmt::print("{}: {}\n", said, OneLine(text));
  } else {
    fmt::print("{} at byte {}: {}\n", said, verdict.position, OneLine(text));
  }
}

base::Result<int> RunCheck(const CheckFlags& flags) {
  if (flags.texts.empty()) return MakeError(ErrorCode::kUsage, "a text to check is needed");
  KV_TRY(const auto spec, SpecOf(flags));
  auto grammar = constraints::CompileGrammar(spec);
  if (!grammar) {
    // Whatever is wrong with a constraint, it is wrong usage.
    base::Error error = grammar.error();
    error.code = ErrorCode::kUsage;
    return error;
  }
  constraints::Recognizer recognizer(std::move(grammar).value(), spec.max_bytes);
  auto results = ordered_json::array();
  bool all = true;
  for (const std::string& text : flags.texts) {
    KV_TRY(const constraints::TextVerdict verdict, constraints::Judge(recognizer, text));
    all = all && verdict.complete;
    if (!flags.json) PrintVerdict(text, verdict);
    results.push_back({{"text", text},
                       {"accepted", verdict.accepted},
                       {"complete", verdict.complete},
                       {"position", verdict.position}});
  }
  if (flags.json) PrintJson({{"results", std::move(results)}});
  return all ? 0 : 1;
}

}  // namespace

void AddCheckCommand(CommandSet& commands) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* command = commands.Add("check", "Does a constraint accept each of these texts?",
                                   "kvasir check --regex '[0-9]{4}' 2024 24");
  AddConstraintFlags(command, flags->constraint);
  command->add_option("--form", flags->form, "wujue, qijue, wulv or qilv")->type_name("FORM");
  AddTexts(command, "TEXT", flags->texts, "texts to check");
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunCheck(*flags); });
}

}  // namespace kvasir::cli
