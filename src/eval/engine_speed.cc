#include "eval/engine_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "engine/scheduler.h"
#include "eval/speed.h"

namespace kvasir::eval {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;
using tokenizer::TokenType;

namespace {

constexpr std::size_t kPromptTokens = 16;

// Counts a stream's tokens, and keeps them.
class StreamListener : public engine::Listener {
 public:
  explicit StreamListener(const Stopwatch& watch) : watch_(watch) {}
  void OnToken(const engine::TokenStep& step) override {
    if (tokens.empty()) first_s = watch_.Seconds();
    tokens.push_back(step.token.id);
    bytes += step.text.size();
  }
  void OnDone(const base::Result<engine::Usage>& usage) override { failed = !usage; }

  std::vector<TokenId> tokens;
  std::size_t bytes = 0;
  double first_s = 0;
  bool failed = false;

 private:
  const Stopwatch& watch_;
};

engine::EngineRequest StreamRequest(std::uint64_t stream, std::uint64_t tokens,
                                    const tokenizer::Vocabulary& vocabulary) {
  engine::EngineRequest request;
  request.client = fmt::format("{}", stream % 4);
  request.generate.max_tokens = tokens;
  request.generate.seed = stream;
  request.generate.sampling.temperature = 1.0f;
  for (std::size_t i = 0; i < kPromptTokens; ++i) {
    const std::uint64_t mixed = (stream + 1) * 7919 + i * 104729;
    request.generate.prompt.push_back(static_cast<TokenId>(mixed % vocabulary.size()));
  }
  return request;
}

engine::SchedulerOptions EngineOptions(std::uint64_t streams) {
  engine::SchedulerOptions options;
  options.work.max_batch = streams;
  options.work.step_tokens = std::max<std::uint64_t>(512, streams);
  options.waiting = engine::WaitingLimits::None();
  return options;
}

}  // namespace

base::Result<tokenizer::Vocabulary> MakePlainVocabulary(std::uint64_t tokens) {
  KV_CHECK(tokens >= 300 && tokens <= 100'000'000);
  tokenizer::VocabularySpec spec;
  const auto add = [&](std::string piece, TokenType type) {
    spec.pieces.push_back(std::move(piece));
    spec.scores.push_back(0);
    spec.types.push_back(type);
  };
  add("<unk>", TokenType::kUnknown);
  add("<s>", TokenType::kControl);
  add("</s>", TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  constexpr std::uint64_t kFirst = 0x4e00;
  constexpr std::uint64_t kIdeographs = 20'000;
  for (std::uint64_t i = 0; spec.pieces.size() < tokens; ++i) {
    std::string piece;
    base::AppendUtf8(static_cast<std::uint32_t>(kFirst + i % kIdeographs), piece);
    if (i >= kIdeographs) {
      base::AppendUtf8(static_cast<std::uint32_t>(kFirst + i / kIdeographs - 1), piece);
    }
    add(std::move(piece), TokenType::kNormal);
  }
  spec.unk = 0;
  spec.bos = 1;
  spec.eos = 2;
  return tokenizer::Vocabulary::Make(std::move(spec));
}

base::Result<EngineSpeed> MeasureEngine(const model::Model& model,
                                        const tokenizer::Vocabulary& vocabulary,
                                        std::uint64_t streams, const SpeedOptions& options,
                                        base::ThreadTeam& team) {
  const std::uint64_t context = model.shape().context;
  if (options.tokens == 0 || context < kPromptTokens || options.tokens > context - kPromptTokens) {
    return MakeError(ErrorCode::kUsage,
                     "{} tokens after a prompt of {} do not fit the model's context of {}",
                     options.tokens, kPromptTokens, context);
  }
  if (vocabulary.size() != model.shape().vocab) {
    return MakeError(ErrorCode::kUsage, "a vocabulary of {} tokens for a model of {}",
                     vocabulary.size(), model.shape().vocab);
  }
  std::vector<double> tokens_per_s;
  std::vector<double> first_ms;
  std::vector<double> step_ms;
  // The first repetition warms up, and is the check's.
  for (std::uint64_t repetition = 0; repetition <= options.repetitions; ++repetition) {
    std::deque<StreamListener> listeners;
    KV_TRY(const auto engine,
           engine::Engine::Make(model, vocabulary, team, EngineOptions(streams)));
    const Stopwatch watch;
    for (std::uint64_t i = 0; i < streams; ++i) {
      KV_TRY(engine->Submit(StreamRequest(i, options.tokens, vocabulary),
                            &listeners.emplace_back(watch)));
    }
    engine->Drain(std::numeric_limits<std::uint64_t>::max());
    const double seconds = watch.Seconds();
    double first_s = 0;
    for (const StreamListener& listener : listeners) {
      if (listener.failed || listener.tokens.size() != options.tokens) {
        return MakeError(ErrorCode::kNumeric, "a stream ended after {} tokens of {}",
                         listener.tokens.size(), options.tokens);
      }
      first_s += listener.first_s / static_cast<double>(streams);
    }
    const engine::Metrics metrics = engine->Snapshot().metrics;
    if (repetition > 0) {
      tokens_per_s.push_back(static_cast<double>(streams * options.tokens) / seconds);
      first_ms.push_back(first_s * 1e3);
      step_ms.push_back(static_cast<double>(metrics.step_us.sum_us()) /
                        static_cast<double>(metrics.steps) / 1e3);
      continue;
    }
    for (const std::uint64_t i : {std::uint64_t{0}, streams - 1}) {
      KV_TRY(const auto alone, engine::Scheduler::Make(model, vocabulary, team, EngineOptions(1)));
      StreamListener listener(watch);
      KV_TRY(alone->Submit(StreamRequest(i, options.tokens, vocabulary), &listener));
      while (alone->Step()) {
      }
      if (listener.tokens != listeners[i].tokens) {
        return MakeError(ErrorCode::kNumeric, "stream {} differs from itself alone", i);
      }
    }
  }
  return EngineSpeed{Median(tokens_per_s), Median(first_ms), Median(step_ms)};
}

}  // namespace kvasir::eval
