// CompletionAnswer: of /v1/completions and /v1/chat/completions, whole or as a stream.
#ifndef KVASIR_SERVER_COMPLETION_ANSWER_H_
#define KVASIR_SERVER_COMPLETION_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/answer.h"
#include "server/answer_json.h"

namespace kvasir::server {

struct CompletionAnswerOptions {
  AnswerHead head = {};
  std::uint64_t seed = 0;
  std::uint64_t n = 1;  // Choices of each prompt.
  bool stream = false;
  bool echo = false;
  // The tokens themselves were only needed to have the prompt scored: they are not shown.
  bool hide_tokens = false;
  std::vector<std::string> prompt_texts = {};               // [prompts]
  std::vector<std::vector<base::TokenId>> prompt_ids = {};  // [prompts], where echo has logprobs
};

class CompletionAnswer final : public Answer {
 public:
  // Borrows the vocabulary.
  CompletionAnswer(CompletionAnswerOptions options, const tokenizer::Vocabulary& vocabulary);

  void MoveOutput(std::string& to) override;
  std::size_t pending_bytes() const override { return output_.size(); }
  bool complete() const override {
    return options_.stream ? stream_ended_ : ended() || error().has_value();
  }
  bool streams() const override { return options_.stream; }
  ApiResult<std::string> Body() override;
  std::optional<std::uint64_t> seed() const override { return options_.seed; }
  // How the choices ended, "stop" or "length", the first one's; for the log.
  std::string_view finish_reason() const { return choices_.front().finish_reason; }

 private:
  void OnNews(std::size_t request, News& news) override;
  void Handle(std::size_t request, News& news);
  void OnToken(std::size_t index, TokenNews& news);
  void OnFinish(std::size_t index, engine::FinishReason reason, std::string rest);
  // What a choice begins with: the role, the echoed prompt with its scores.
  void Begin(std::size_t index);
  // Of a stream: writes the part; of a whole answer: adds it to the choice.
  void Emit(std::size_t index, AnswerChoice part);
  void EndStream();
  engine::Usage ShownUsage() const;

  struct Progress {
    bool begun = false;
    bool first_sent = false;
    std::size_t characters = 0;  // Of prompt and answer so far.
  };

  const CompletionAnswerOptions options_;
  const tokenizer::Vocabulary& vocabulary_;
  const AnswerJson json_;
  std::vector<AnswerChoice> choices_;                        // [prompts × n]
  std::vector<Progress> progress_;                           // [prompts × n]
  std::vector<std::vector<engine::GeneratedToken>> scores_;  // [prompts]: from the second token on
  // [prompts]: what came before the scores, which an answer begins with. Null: nothing is held.
  std::vector<std::optional<std::vector<News>>> held_;
  std::string output_;
  bool stream_ended_ = false;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_COMPLETION_ANSWER_H_
