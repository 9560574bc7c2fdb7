#include "api/engine_request.h"

#include <utility>
#include <vector>

#include "base/random_seed.h"
#include "constraints/drawable_tokens.h"
#include "engine/prompt.h"

namespace kvasir::api {
namespace {

using base::ErrorCode;
using base::MakeError;

sampling::SamplingOptions SamplingOf(const Request& request) {
  sampling::SamplingOptions options;
  options.temperature = request.temperature;
  options.top_k = request.top_k;
  options.top_p = request.top_p;
  options.min_p = request.min_p;
  options.repeat_penalty = request.repeat_penalty;
  options.presence_penalty = request.presence_penalty;
  options.frequency_penalty = request.frequency_penalty;
  options.logit_bias = request.biases;
  return options;
}

base::Result<void> AddEndsAndBans(const tokenizer::Vocabulary& vocabulary, const Request& request,
                                  engine::GenerateRequest& made) {
  for (const std::string& text : request.bans) {
    if (text.empty()) return MakeError(ErrorCode::kUsage, "a ban is empty: a text is needed");
  }
  KV_TRY(made.sampling.banned, constraints::BannedTokens(vocabulary, request.bans));
  std::vector<TokenId> ends = engine::EndTokens(vocabulary);
  if (request.end_token) ends = {*request.end_token};
  KV_TRY(vocabulary.CheckIds(ends));
  if (request.ignore_end) {
    made.sampling.banned.insert(made.sampling.banned.end(), ends.begin(), ends.end());
  } else {
    made.end_tokens = std::move(ends);
    made.named_end_tokens = request.end_token.has_value();
  }
  return base::Success();
}

constraints::ConstraintKind KindOf(Constraint::Kind kind) {
  switch (kind) {
    case Constraint::Kind::kRegex:
      return constraints::ConstraintKind::kRegex;
    case Constraint::Kind::kJsonSchema:
      return constraints::ConstraintKind::kJsonSchema;
    case Constraint::Kind::kGrammar:
      return constraints::ConstraintKind::kGrammar;
    case Constraint::Kind::kChoices:
      return constraints::ConstraintKind::kChoices;
  }
  return constraints::ConstraintKind::kRegex;
}

base::Result<std::shared_ptr<const constraints::Matcher>> MatcherOf(const Model::Impl& model,
                                                                    const Constraint& constraint) {
  if (constraint.texts.empty()) {
    return MakeError(ErrorCode::kUsage, "the constraint has no text: one is needed");
  }
  if (constraint.kind != Constraint::Kind::kChoices && constraint.texts.size() > 1) {
    return MakeError(ErrorCode::kUsage, "the constraint has {} texts: only choices have several",
                     constraint.texts.size());
  }
  constraints::ConstraintSpec spec = {KindOf(constraint.kind), constraint.texts};
  spec.json.assert_formats = constraint.assert_formats;
  spec.json.compact = constraint.compact_json;
  KV_TRY(auto matcher, model.compiler().Make(spec));
  return std::shared_ptr<const constraints::Matcher>(std::move(matcher));
}

}  // namespace

base::Result<engine::GenerateRequest> EngineRequest(const Model::Impl& model,
                                                    const Request& request) {
  engine::GenerateRequest made;
  made.prompt = request.prompt_tokens;
  if (made.prompt.empty()) {
    KV_TRY(made.prompt, engine::PromptTokens(*model.loaded.tokenizer, request.prompt));
  }
  made.overflow =
      request.overflow == Overflow::kRoll ? engine::Overflow::kRoll : engine::Overflow::kStop;
  made.max_tokens = request.max_tokens;
  made.sampling = SamplingOf(request);
  made.seed = request.seed ? *request.seed : base::RandomSeed();
  if (request.best_of == 0 || request.count > engine::kMaxChoices / request.best_of) {
    return MakeError(ErrorCode::kUsage,
                     "{} continuations as the best of {} each: best_of is 1 or more, and at most "
                     "{} are drawn",
                     request.count, request.best_of, engine::kMaxChoices);
  }
  made.choices = request.count * request.best_of;
  made.stops = request.stops;
  made.top_logprobs = request.top_logprobs;
  KV_TRY(AddEndsAndBans(model.vocabulary(), request, made));
  if (request.constraint) {
    KV_TRY(made.constraint, MatcherOf(model, *request.constraint));
  }
  return made;
}

base::Result<engine::GeneratorOptions> EngineOptions(const Model::Impl& model,
                                                     const CacheSettings& settings) {
  engine::GeneratorOptions options;
  if (!settings.policy.empty()) {
    KV_TRY(options.policy,
           kvcache::CachePolicy::Parse(settings.policy, model.loaded.model->shape().Policy()));
  }
  options.use_cache = settings.enabled;
  options.share_prefixes = settings.share_prefixes;
  options.block_tokens = settings.block_tokens;
  options.prefill_chunk = settings.prefill_chunk;
  options.max_batch = settings.max_batch;
  options.kv_budget_bytes = settings.budget_bytes;
  return options;
}

}  // namespace kvasir::api
