#include "engine/request.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/check.h"
#include "sampling/stop_strings.h"

namespace kvasir::engine {

using base::ErrorCode;
using base::MakeError;

namespace {

base::Result<void> CheckTokens(std::string_view what, const std::vector<TokenId>& tokens,
                               std::uint64_t vocab) {
  for (const TokenId token : tokens) {
    if (token >= vocab) {
      return MakeError(ErrorCode::kUsage, "{} {} is not a token of the model: ids are 0 to {}",
                       what, token, vocab - 1);
    }
  }
  return base::Success();
}

base::Result<void> CheckContinued(const GenerateRequest& request) {
  if (request.continued == 0) return base::Success();
  if (request.continued >= request.prompt.size() || request.choices != 1) {
    return MakeError(ErrorCode::kUsage,
                     "a text of {} tokens, {} of them generated, cannot be continued {} times: it "
                     "must begin with a prompt, and goes on once",
                     request.prompt.size(), request.continued, request.choices);
  }
  if (!request.constraint) return base::Success();
  const auto matcher = request.constraint->Clone();
  for (const TokenId token : std::span(request.prompt).last(request.continued)) {
    const auto& ends = request.end_tokens;
    if (matcher->MayEnd() && std::ranges::find(ends, token) != ends.end()) continue;
    if (!matcher->Accept(token)) {
      return MakeError(ErrorCode::kUsage, "the text to be continued breaks its own constraint");
    }
  }
  return base::Success();
}

}  // namespace

base::Result<void> CheckRequest(const GenerateRequest& request, const model::ModelShape& shape) {
  if (request.prompt.empty()) {
    return MakeError(ErrorCode::kUsage, "the prompt has no tokens: at least 1 is needed");
  }
  const bool rolls = request.overflow == Overflow::kRoll;
  if (rolls && shape.context < 2) {
    return MakeError(ErrorCode::kUsage, "a context of {} tokens cannot roll: it has no half",
                     shape.context);
  }
  if (request.prompt_logprobs && request.prompt.size() > shape.context) {
    return MakeError(
        ErrorCode::kUsage,
        "log-probabilities of a prompt of {} tokens: the model's context holds only {}",
        request.prompt.size(), shape.context);
  }
  if (request.prompt.size() > shape.context && !rolls) {
    return MakeError(ErrorCode::kUsage,
                     "the prompt has {} tokens, but the model's context holds only {}",
                     request.prompt.size(), shape.context);
  }
  if (request.choices == 0 || request.choices > kMaxChoices) {
    return MakeError(ErrorCode::kUsage, "{} continuations of a prompt are not allowed: 1 to {} are",
                     request.choices, kMaxChoices);
  }
  if (request.top_logprobs > shape.vocab) {
    return MakeError(ErrorCode::kUsage,
                     "{} alternatives a token are more than the model's vocabulary of {}",
                     request.top_logprobs, shape.vocab);
  }
  KV_TRY(CheckTokens("token id", request.prompt, shape.vocab));
  KV_TRY(CheckContinued(request));
  KV_TRY(CheckTokens("end token", request.end_tokens, shape.vocab));
  KV_TRY(sampling::Validate(request.sampling, shape.vocab));
  KV_TRY(sampling::StopMatcher::Create(request.stops));
  return base::Success();
}

// Written so that no sum can wrap.
std::uint64_t LongestText(const GenerateRequest& request, const model::ModelShape& shape) {
  const std::uint64_t longest = request.overflow == Overflow::kRoll
                                    ? std::numeric_limits<std::uint32_t>::max()
                                    : shape.context;
  const std::uint64_t room = longest - std::min<std::uint64_t>(longest, request.prompt.size());
  return request.prompt.size() + std::min(room, request.max_tokens);
}

std::uint64_t WindowStart(std::uint64_t length, std::uint64_t context) {
  if (length <= context) return 0;
  const std::uint64_t half = context / 2;
  return (length - context + half - 1) / half * half;
}

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kConstraint:
      return "constraint";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
  }
  KV_CHECK(false);
}

}  // namespace kvasir::engine
