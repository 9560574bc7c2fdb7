#include "cli/generate_session.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/env.h"
#include "cli/json_output.h"
#include "cli/session_settings.h"
#include "cli/store_flags.h"
#include "engine/sequence_pool.h"
#include "kernels/contract.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

// What may stand beside --load-session: where the work is done, and what is printed of it.
constexpr std::array<std::string_view, 20> kFreeFlags = {
    "--help",          "--model",       "--threads",     "--no-kv-cache",    "--block-tokens",
    "--prefill-chunk", "--kv",          "--kv-budget",   "--max-tokens",     "--stream",
    "--json",          "--trace",       "--logprobs",    "--save-session",   "--load-session",
    "--store",         "--store-limit", "--store-queue", "--store-patience", "--store-compress"};

}  // namespace

void AddSessionFlags(CLI::App* command, SessionFlags& flags) {
  command
      ->add_option("--save-session", flags.save,
                   "write the text with its settings and cached blocks to this file at the end")
      ->type_name("FILE");
  command
      ->add_option("--load-session", flags.load,
                   "go on with the text of this file, as if it had never been laid aside")
      ->type_name("FILE");
}

base::Result<void> CheckSessionFlags(const CLI::App* command, const GenerateFlags& flags) {
  if (flags.session.save.empty() && flags.session.load.empty()) return base::Success();
  if (flags.prompt.prompts_file || flags.sampling.count > 1 || flags.best_of > 1 ||
      flags.interactive) {
    return MakeError(ErrorCode::kUsage,
                     "a session is one text: it does not go with --prompts-file, --count, "
                     "--best-of or -i");
  }
  if (flags.session.load.empty()) return base::Success();
  for (const CLI::Option* option : command->get_options()) {
    const std::string name = option->get_name();
    const bool is_free =
        std::ranges::find(kFreeFlags, name) != kFreeFlags.end() || name == "--store-password-file";
    if (option->count() == 0 || is_free) continue;
    return MakeError(ErrorCode::kUsage,
                     "{} does not go with --load-session: the session goes on under its own "
                     "settings",
                     name);
  }
  return base::Success();
}

base::Result<store::SessionModel> SessionModelOf(const GenerateFlags& flags,
                                                 const OpenModel& open) {
  KV_TRY(const base::Hash128 weights, HashOfModel(open.path));
  return store::SessionModel{
      .weights = weights,
      .contract = kernels::kContractVersion,
      .block_tokens = static_cast<std::uint32_t>(flags.model.block_tokens),
      .policy = open.policy ? open.policy->Canonical() : kvcache::PolicyOptions({})};
}

base::Result<SessionGeneration> LoadSession(const GenerateFlags& flags, const OpenModel& open,
                                            const store::SessionModel& model) {
  KV_TRY(store::Session session,
         store::ReadSession(base::Env::Default(), flags.session.load, model));
  KV_TRY(SessionSettings settings, ParseSessionSettings(session.settings));
  SessionGeneration loaded;
  loaded.constraint = std::move(settings.constraint);
  loaded.blocks = std::move(session.blocks);
  engine::GenerateRequest request = std::move(settings.request);
  request.continued = session.tokens.size() - session.prompt_tokens;
  request.prompt = std::move(session.tokens);
  request.max_tokens = flags.max_tokens;
  request.top_logprobs = static_cast<std::size_t>(flags.logprobs.value_or(0));
  if (loaded.constraint) {
    constraints::ConstraintCompiler compiler(open.loaded.tokenizer->vocabulary());
    KV_TRY(request.constraint, compiler.Make(*loaded.constraint));
  }
  KV_TRY(const model::ModelShape shape,
         engine::ShapeServed(open.loaded.model->shape(), GeneratorOptionsOf(open, flags.model)));
  if (const auto checked = engine::CheckRequest(request, shape); !checked) {
    return MakeError(ErrorCode::kBadData, "the session '{}': {}", flags.session.load,
                     checked.error().message);
  }
  loaded.generation.seed = request.seed;
  loaded.generation.settings = ToJson(request.sampling);
  loaded.generation.settings["max_tokens"] = request.max_tokens;
  loaded.generation.settings["session"] = flags.session.load;
  loaded.generation.requests.push_back(std::move(request));
  return loaded;
}

base::Result<void> SaveSession(const GenerateFlags& flags, const OpenModel& open,
                               const store::SessionModel& model,
                               const std::optional<constraints::ConstraintSpec>& constraint,
                               const engine::GenerateRequest& request,
                               const engine::GenerateReport& report, engine::Generator& generator) {
  store::Session session;
  session.tokens = request.prompt;
  session.prompt_tokens = request.prompt.size() - request.continued;
  for (const engine::GeneratedToken& token : report.results.at(0).choices.at(0).tokens) {
    session.tokens.push_back(token.id);
  }
  session.settings = SessionSettingsText({request, constraint});
  KV_TRY(const model::ModelShape shape,
         engine::ShapeServed(open.loaded.model->shape(), GeneratorOptionsOf(open, flags.model)));
  generator.ExportBlocks(engine::CachedPart(session.tokens, shape.context), session.blocks);
  return store::WriteSession(base::Env::Default(), flags.session.save, model, session);
}

}  // namespace kvasir::cli
