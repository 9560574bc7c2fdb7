#include "cli/turn.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "cli/generate_request.h"
#include "cli/generation.h"
#include "cli/json_output.h"
#include "cli/stdout_stream.h"
#include "cli/terminal_text.h"
#include "engine/last_logits.h"
#include "engine/request.h"
#include "sampling/log_probs.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

volatile sig_atomic_t g_interrupted = 0;

extern "C" void OnInterrupt(int) { g_interrupted = 1; }

// While it lives, SIGINT is noted instead of ending the program.
class InterruptScope {
 public:
  InterruptScope() {
    g_interrupted = 0;
    struct sigaction noted = {};
    noted.sa_handler = OnInterrupt;
    noted.sa_flags = SA_RESTART;  // Printing goes on.
    sigaction(SIGINT, &noted, &before_);
  }
  ~InterruptScope() { sigaction(SIGINT, &before_, nullptr); }
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  struct sigaction before_ = {};
};

}  // namespace

base::Result<TurnWriter> TurnWriter::Make(const OpenModel& open, const ModelFlags& flags) {
  KV_TRY(auto generator,
         engine::Generator::Make(*open.loaded.model, open.loaded.tokenizer->vocabulary(),
                                 *open.team, GeneratorOptionsOf(open, flags)));
  return TurnWriter(open, flags, std::move(generator));
}

base::Result<Turn> TurnWriter::Write(const std::string& text, const std::string& line,
                                     const GenerateFlags& flags) {
  Prompt prompt;
  prompt.text = text + line;
  prompt.source = "the text";
  KV_TRY(const Generation generation, MakeGeneration(flags, open_, {prompt}));
  Turn turn = {text, prompt.text, generation.requests.front().prompt};
  const InterruptScope scope;
  engine::Observer observer;
  observer.on_token = [&](const engine::TokenEvent& event) -> base::Result<void> {
    turn.after += event.text;
    turn.tokens.push_back(event.token.id);
    ++turn.written;
    fmt::print("{}", event.text);
    KV_TRY(FlushStdout());
    turn.interrupted = g_interrupted != 0 && !event.finish;
    if (!turn.interrupted) return base::Success();
    return MakeError(ErrorCode::kCancelled, "the turn was interrupted");
  };
  const auto report = generator_->Run(generation.requests, observer);
  if (!report && !turn.interrupted) return report.error();
  return turn;
}

base::Result<std::string> TurnWriter::Probabilities(const Turn& turn, std::size_t k) {
  if (turn.written == 0) return MakeError(ErrorCode::kUsage, "nothing has been written yet");
  const model::Model& model = *open_.loaded.model;
  const tokenizer::Vocabulary& vocabulary = open_.loaded.tokenizer->vocabulary();
  if (k > vocabulary.size()) {
    return MakeError(ErrorCode::kUsage, "/probs {}: the model's vocabulary has only {} tokens", k,
                     vocabulary.size());
  }
  const engine::GeneratorOptions options = GeneratorOptionsOf(open_, flags_);
  const base::TokenId last = turn.tokens.back();
  const std::size_t length = turn.tokens.size() - 1;
  const auto seen = std::span(turn.tokens)
                        .first(length)
                        .subspan(engine::WindowStart(length, model.shape().context));
  KV_TRY(const auto row, engine::LastLogits(model, seen, options, *open_.team));
  const auto logits = std::span(row).first(vocabulary.size());
  KV_TRY(auto top, sampling::TopLogProbs(logits, k));
  if (std::none_of(top.begin(), top.end(), [&](const auto& token) { return token.id == last; })) {
    KV_TRY(const double logprob, sampling::LogProb(logits, last));
    top.push_back({last, logprob, std::exp(logprob)});
  }
  constexpr std::size_t kTokenColumns = 8;
  std::string table;
  for (const sampling::TokenLogProb& token : top) {
    table += fmt::format("{} {} {:6.2f} %  id {}\n", token.id == last ? "→" : " ",
                         PadRight(Visible(TokenText(vocabulary, token.id)), kTokenColumns),
                         100.0 * token.prob, token.id);
  }
  return table;
}

}  // namespace kvasir::cli
