#include "server/completion_answer.h"

#include <iterator>
#include <utility>

#include "base/check.h"

namespace kvasir::server {

CompletionAnswer::CompletionAnswer(CompletionAnswerOptions options,
                                   const tokenizer::Vocabulary& vocabulary)
    : Answer(options.prompt_texts.size()),
      options_(std::move(options)),
      vocabulary_(vocabulary),
      json_(options_.head, vocabulary),
      choices_(options_.prompt_texts.size() * options_.n),
      progress_(choices_.size()),
      scores_(options_.prompt_texts.size()),
      held_(options_.prompt_texts.size()) {
  if (options_.echo && options_.head.logprobs) {
    for (auto& held : held_) held.emplace();
  }
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].index = i;
    progress_[i].characters = CountCharacters(options_.prompt_texts[i / options_.n]);
  }
}

void CompletionAnswer::OnNews(std::size_t request, News& news) {
  auto& held = held_[request];
  const bool done = std::holds_alternative<DoneNews>(news);
  if (held && !done && !std::holds_alternative<ScoredNews>(news)) {
    held->push_back(std::move(news));
    return;
  }
  // The scores come first, the end last, and what was held between them.
  std::vector<News> before = held ? std::move(*held) : std::vector<News>();
  held.reset();
  if (!done) Handle(request, news);
  for (News& earlier : before) Handle(request, earlier);
  if (done) Handle(request, news);
}

void CompletionAnswer::Handle(std::size_t request, News& news) {
  const std::size_t first = request * options_.n;
  if (auto* token = std::get_if<TokenNews>(&news)) {
    OnToken(first + token->choice, *token);
  } else if (auto* scored = std::get_if<ScoredNews>(&news)) {
    scores_[request] = std::move(scored->tokens);
  } else if (auto* finish = std::get_if<FinishNews>(&news)) {
    OnFinish(first + finish->choice, finish->reason, std::move(finish->rest));
  } else if (std::holds_alternative<DoneNews>(news) && options_.stream && (ended() || error())) {
    EndStream();
  }
}

void CompletionAnswer::Begin(std::size_t index) {
  Progress& progress = progress_[index];
  if (std::exchange(progress.begun, true)) return;
  AnswerChoice part;
  if (options_.echo) {
    const std::size_t prompt = index / options_.n;
    part.text = options_.prompt_texts[prompt];
    if (options_.head.logprobs) {
      std::size_t offset = 0;
      const auto& tokens = options_.prompt_ids[prompt];
      const auto& scores = scores_[prompt];
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool scored = i > 0 && i <= scores.size();
        part.tokens.push_back(
            {scored ? scores[i - 1] : engine::GeneratedToken{tokens[i], 0, 1, {}}, scored, offset});
        offset += CountCharacters(vocabulary_.Bytes(tokens[i]));
      }
    }
  }
  if (options_.head.chat || options_.echo) Emit(index, std::move(part));
}

void CompletionAnswer::OnToken(std::size_t index, TokenNews& news) {
  Begin(index);
  if (options_.hide_tokens) return;
  AnswerChoice part;
  part.text = std::move(news.text);
  Progress& progress = progress_[index];
  if (options_.head.logprobs) {
    part.tokens.push_back({std::move(news.token), true, progress.characters});
    progress.characters += CountCharacters(vocabulary_.Bytes(part.tokens[0].token.id));
  }
  // Of the last token the reason comes by itself, with OnFinish.
  if (!part.text.empty() || !part.tokens.empty()) Emit(index, std::move(part));
}

void CompletionAnswer::OnFinish(std::size_t index, engine::FinishReason reason, std::string rest) {
  if (reason == engine::FinishReason::kCancelled) {
    // Nobody but a server that shuts down ends an answer that is still waited for.
    Fail(ApiError(503, "the server is shutting down", {}, "shutting_down"));
    return;
  }
  Begin(index);
  AnswerChoice part;
  if (!options_.hide_tokens) part.text = std::move(rest);
  part.finish_reason =
      options_.hide_tokens ? std::string_view("length") : OpenAiFinishReason(reason);
  choices_[index].finish_reason = part.finish_reason;
  Emit(index, std::move(part));
}

void CompletionAnswer::Emit(std::size_t index, AnswerChoice part) {
  part.index = index;
  if (options_.stream) {
    json_.AppendPart(output_, part, !std::exchange(progress_[index].first_sent, true));
    return;
  }
  AnswerChoice& choice = choices_[index];
  choice.text += part.text;
  std::move(part.tokens.begin(), part.tokens.end(), std::back_inserter(choice.tokens));
}

void CompletionAnswer::EndStream() {
  if (std::exchange(stream_ended_, true)) return;
  if (error()) {
    output_ += ServerSentEvent(ErrorJson(*error()));
  } else if (options_.head.include_usage) {
    output_ += json_.UsagePart(ShownUsage());
  }
  output_ += kLastEvent;
}

engine::Usage CompletionAnswer::ShownUsage() const {
  engine::Usage shown = usage();
  if (options_.hide_tokens) shown.completion_tokens = 0;
  return shown;
}

void CompletionAnswer::MoveOutput(std::string& to) {
  to += output_;
  output_.clear();  // Keeps its room for the next.
}

ApiResult<std::string> CompletionAnswer::Body() {
  KV_CHECK(ended() && !error() && !options_.stream);
  return json_.Whole(choices_, ShownUsage());
}

}  // namespace kvasir::server
