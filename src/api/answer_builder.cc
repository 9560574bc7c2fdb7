#include "api/answer_builder.h"

#include <utility>

#include "engine/best_of.h"

namespace kvasir::api {
namespace {

Token PublicToken(const engine::GeneratedToken& token) {
  Token made = {token.id, token.logprob, {}};
  made.top.reserve(token.top.size());
  for (const sampling::TokenLogProb& other : token.top) {
    made.top.push_back({other.id, other.logprob});
  }
  return made;
}

FinishReason PublicReason(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::kStop:
      return FinishReason::kStop;
    case engine::FinishReason::kLength:
      return FinishReason::kLength;
    case engine::FinishReason::kConstraint:
      return FinishReason::kConstraint;
    case engine::FinishReason::kCancelled:
    case engine::FinishReason::kDeadline:
      return FinishReason::kCancelled;
  }
  return FinishReason::kCancelled;
}

// Of a run that was stopped.
Usage UsageSoFar(const std::vector<engine::GenerateRequest>& asked,
                 const std::vector<std::vector<engine::ChoiceResult>>& choices) {
  Usage usage;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    usage.prompt_tokens += asked[i].prompt.size();
    for (const engine::ChoiceResult& choice : choices[i]) {
      usage.completion_tokens += choice.tokens.size();
    }
  }
  return usage;
}

Usage PublicUsage(const engine::GenerateReport& report) {
  return {.prompt_tokens = report.usage.prompt_tokens,
          .completion_tokens = report.usage.completion_tokens,
          .cached_tokens = report.usage.cached_tokens,
          .peak_cache_bytes = report.peak_bytes,
          .prefill_ms = report.timing.prefill_ms,
          .decode_ms = report.timing.decode_ms};
}

}  // namespace

AnswerBuilder::AnswerBuilder(const std::vector<Request>& requests,
                             const std::vector<engine::GenerateRequest>& asked)
    : requests_(requests), asked_(asked), choices_(asked.size()) {}

bool AnswerBuilder::Take(const engine::TokenEvent& event, const TokenCallback& callback) {
  engine::ChoiceResult& choice = choices_[event.request][event.choice];
  choice.text += event.text;
  choice.tokens.push_back(event.token);
  if (event.finish) choice.finish = *event.finish;
  if (!callback) return true;
  const Token token = PublicToken(event.token);
  return callback({event.request, event.choice, token, event.text});
}

base::Result<Usage> AnswerBuilder::Run(engine::Generator& generator, const TokenCallback& callback,
                                       std::exception_ptr& thrown) {
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    choices_[i].resize(asked_[i].choices);
    for (engine::ChoiceResult& choice : choices_[i]) {
      choice.finish = engine::FinishReason::kCancelled;
    }
  }
  bool stopped = false;
  engine::Observer observer;
  observer.on_token = [&](const engine::TokenEvent& event) -> base::Result<void> {
    try {
      stopped = !Take(event, callback);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (!stopped && !thrown) return base::Success();
    return base::MakeError(base::ErrorCode::kCancelled, "the callback ended the run");
  };
  auto report = generator.Run(asked_, observer);
  if (!report && !stopped) return report.error();
  if (!report) return UsageSoFar(asked_, choices_);
  for (std::size_t i = 0; i < asked_.size(); ++i) {  // Those that end without a token.
    choices_[i] = std::move(report.value().results[i].choices);
  }
  return PublicUsage(report.value());
}

std::vector<Answer> AnswerBuilder::Finish() {
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    Answer answer = {asked_[i].seed, {}};
    for (engine::ChoiceResult& choice :
         engine::BestOf(std::move(choices_[i]), requests_[i].best_of)) {
      Continuation made = {std::move(choice.text), {}, PublicReason(choice.finish)};
      for (const engine::GeneratedToken& token : choice.tokens) {
        made.tokens.push_back(PublicToken(token));
      }
      answer.continuations.push_back(std::move(made));
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace kvasir::api
