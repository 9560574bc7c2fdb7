#include "kvasir/session.h"

#include <exception>
#include <utility>

#include "api/answer_builder.h"
#include "api/engine_request.h"
#include "api/fp_scope.h"
#include "api/model_impl.h"
#include "api/public_error.h"
#include "base/thread_team.h"
#include "engine/generator.h"
#include "engine/last_logits.h"
#include "engine/prompt.h"
#include "eval/perplexity.h"
#include "eval/sequence_logits.h"
#include "sampling/log_probs.h"

namespace kvasir {

struct Session::Impl {
  std::unique_ptr<base::ThreadTeam> team;
  engine::GeneratorOptions options;
  std::unique_ptr<engine::Generator> generator;
  Usage usage;

  eval::ArrangementOptions Arrangement() const {
    return {.block_tokens = options.block_tokens,
            .prefill_chunk = options.prefill_chunk,
            .kv_cache = options.use_cache,
            .policy = options.policy};
  }
};

Session::Session(Model model, std::unique_ptr<Impl> impl)
    : model_(std::move(model)), impl_(std::move(impl)) {}
Session::Session(Session&& other) noexcept = default;
Session& Session::operator=(Session&& other) noexcept {
  impl_ = std::move(other.impl_);  // First: it borrows the model.
  model_ = std::move(other.model_);
  return *this;
}
Session::~Session() = default;

Result<Session> Session::Make(const Model& model, const SessionOptions& options) {
  const api::FpScope scope;
  return api::PublicResult([&]() -> base::Result<Session> {
    const Model::Impl& held = *model.impl();
    auto impl = std::make_unique<Impl>();
    KV_TRY(impl->options, api::EngineOptions(held, options.cache));
    KV_TRY(impl->team,
           base::ThreadTeam::Make(options.threads != 0 ? options.threads
                                                       : base::ThreadTeam::PhysicalCores()));
    KV_TRY(impl->generator, engine::Generator::Make(*held.loaded.model, held.vocabulary(),
                                                    *impl->team, impl->options));
    return Session(model, std::move(impl));
  });
}

Result<Answer> Session::Generate(const Request& request, const TokenCallback& callback) {
  auto answers = GenerateAll({request}, callback);
  if (!answers) return answers.error();
  return std::move(answers->front());
}

Result<std::vector<Answer>> Session::GenerateAll(const std::vector<Request>& requests,
                                                 const TokenCallback& callback) {
  const api::FpScope scope;
  std::exception_ptr thrown;
  auto answers = api::PublicResult([&]() -> base::Result<std::vector<Answer>> {
    std::vector<engine::GenerateRequest> asked;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (callback && requests[i].best_of > 1) {
        return base::MakeError(base::ErrorCode::kUsage,
                               "best_of is {}: it chooses when all texts are written, so it does "
                               "not go with a callback",
                               requests[i].best_of);
      }
      auto made = api::EngineRequest(*model_.impl(), requests[i]);
      if (!made && requests.size() > 1) {
        base::Error error = made.error();
        error.message = fmt::format("prompt {}: {}", i + 1, error.message);
        return error;
      }
      KV_TRY(auto request, std::move(made));
      asked.push_back(std::move(request));
    }
    api::AnswerBuilder builder(requests, asked);
    KV_TRY(impl_->usage, builder.Run(*impl_->generator, callback, thrown));
    return builder.Finish();
  });
  if (thrown) std::rethrow_exception(thrown);
  return answers;
}

const Usage& Session::usage() const { return impl_->usage; }

Result<Logits> Session::AllLogits(const std::vector<TokenId>& tokens) {
  const api::FpScope scope;
  return api::PublicResult([&]() -> base::Result<Logits> {
    const model::Model& model = *model_.impl()->loaded.model;
    Logits logits = {tokens.size(), model.shape().vocab, {}};
    KV_TRY(logits.values, eval::SequenceLogits(model, tokens, impl_->Arrangement(), *impl_->team));
    return logits;
  });
}

Result<Logits> Session::LastLogits(const std::vector<TokenId>& tokens) {
  const api::FpScope scope;
  return api::PublicResult([&]() -> base::Result<Logits> {
    const model::Model& model = *model_.impl()->loaded.model;
    Logits logits = {1, model.shape().vocab, {}};
    KV_TRY(logits.values, engine::LastLogits(model, tokens, impl_->options, *impl_->team));
    return logits;
  });
}

Result<std::vector<TokenProbability>> Session::Next(std::string_view prompt, std::size_t k) {
  const api::FpScope scope;
  return api::PublicResult([&]() -> base::Result<std::vector<TokenProbability>> {
    const Model::Impl& held = *model_.impl();
    KV_TRY(const auto tokens, engine::PromptTokens(*held.loaded.tokenizer, prompt));
    KV_TRY(const auto row,
           engine::LastLogits(*held.loaded.model, tokens, impl_->options, *impl_->team));
    KV_TRY(const auto top, sampling::TopLogProbs(row, k));
    std::vector<TokenProbability> next;
    for (const sampling::TokenLogProb& token : top) next.push_back({token.id, token.logprob});
    return next;
  });
}

Result<Evaluation> Session::Evaluate(std::string_view text, std::uint64_t stride) {
  const api::FpScope scope;
  return api::PublicResult([&]() -> base::Result<Evaluation> {
    const Model::Impl& held = *model_.impl();
    KV_TRY(auto scored, eval::EvaluateText(*held.loaded.model, *held.loaded.tokenizer, text,
                                           {.stride = stride, .arrangement = impl_->Arrangement()},
                                           *impl_->team));
    return Evaluation{scored.tokens, scored.nll, scored.perplexity, scored.bits_per_char,
                      std::move(scored.token_nll)};
  });
}

}  // namespace kvasir
