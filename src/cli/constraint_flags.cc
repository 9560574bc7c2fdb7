#include "cli/constraint_flags.h"

#include <utility>

#include "base/env.h"
#include "cli/number_flags.h"
#include "cli/text_flags.h"

namespace kvasir::cli {

using base::ErrorCode;
using base::MakeError;
using constraints::ConstraintKind;
using constraints::ConstraintSpec;

void AddConstraintFlags(CLI::App* command, ConstraintFlags& flags) {
  command
      ->add_option("--regex", flags.regex, "the text must match this regular expression as a whole")
      ->type_name("REGEX");
  command
      ->add_option("--json-schema", flags.json_schema,
                   "the text must be JSON that this schema (2020-12) accepts")
      ->type_name("FILE");
  command->add_option("--grammar", flags.grammar, "the text must be of this grammar (GBNF)")
      ->type_name("FILE");
  AddTexts(command, "--choice", flags.choices, "the text must be one of these; may be repeated");
  command
      ->add_option("--formats", flags.formats,
                   "format in a schema: annotate (default) ignores it, assert enforces it")
      ->type_name("annotate|assert")
      ->check(CLI::IsMember({"annotate", "assert"}));
  command
      ->add_option("--json-layout", flags.layout,
                   "spellings of JSON: any (default), or compact: one for each value, no blanks")
      ->type_name("any|compact")
      ->check(CLI::IsMember({"any", "compact"}));
  AddBytes(command, "--constraint-memory", flags.memory, {1 << 20, std::uint64_t{1} << 40},
           "what a constraint may keep of texts, in bytes; default 64MiB");
}

base::Result<std::optional<ConstraintSpec>> ConstraintOf(const ConstraintFlags& flags) {
  std::vector<ConstraintSpec> specs;
  const auto add_file = [&](ConstraintKind kind, const std::string& path) -> base::Result<void> {
    KV_TRY(const auto file, base::Env::Default().Map(path));
    const auto bytes = file->bytes();
    specs.push_back(
        {kind, {std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())}});
    return base::Success();
  };
  if (flags.regex) specs.push_back({ConstraintKind::kRegex, {*flags.regex}});
  if (flags.json_schema) {
    KV_TRY(add_file(ConstraintKind::kJsonSchema, *flags.json_schema));
  }
  if (flags.grammar) {
    KV_TRY(add_file(ConstraintKind::kGrammar, *flags.grammar));
  }
  if (!flags.choices.empty()) specs.push_back({ConstraintKind::kChoices, flags.choices});
  if (specs.size() > 1) {
    return MakeError(ErrorCode::kUsage,
                     "only one of --regex, --json-schema, --grammar and --choice is allowed");
  }
  if (!flags.json_schema && (flags.formats != "annotate" || flags.layout != "any")) {
    return MakeError(ErrorCode::kUsage, "--formats and --json-layout need --json-schema");
  }
  if (specs.empty() && flags.memory) {
    return MakeError(ErrorCode::kUsage,
                     "--constraint-memory needs --regex, --json-schema, --grammar or --choice");
  }
  if (specs.empty()) return std::optional<ConstraintSpec>();
  if (flags.memory) specs[0].max_bytes = static_cast<std::size_t>(*flags.memory);
  specs[0].json.assert_formats = flags.formats == "assert";
  specs[0].json.compact = flags.layout == "compact";
  return std::optional(std::move(specs[0]));
}

}  // namespace kvasir::cli
