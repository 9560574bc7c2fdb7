// Section 6 of the demo: the same run with and without a cache.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cli/demo.h"
#include "cli/generation.h"
#include "cli/terminal_text.h"
#include "engine/prompt.h"
#include "eval/random_gpt2.h"

namespace kvasir::cli {
namespace {

template <typename... Args>
std::string Fill(std::string_view text, const Args&... args) {
  return fmt::format(fmt::runtime(text), args...);
}

// One run of a comparison.
struct Timed {
  double ms = 0;
  std::uint64_t positions = 0;
  std::uint64_t held_bytes = 0;
  std::vector<float> logits;  // Each step's row, one after the other.
  std::vector<base::TokenId> tokens;
};

struct Compared {
  Timed with;
  Timed without;
  // Bit for bit: not as numbers, of which −0 and 0 are equal.
  bool equal() const {
    return with.tokens == without.tokens && with.logits.size() == without.logits.size() &&
           std::memcmp(with.logits.data(), without.logits.data(),
                       with.logits.size() * sizeof(float)) == 0;
  }
};

struct Task {
  const model::Model& model;
  std::uint64_t characters;
  int repetitions;  // The fastest run of each kind counts.
};

base::Result<Timed> RunOnce(const Demo& demo, const Task& task, bool use_cache) {
  engine::GenerateRequest request;
  KV_TRY(request.prompt, engine::PromptTokens(*demo.open.loaded.tokenizer, ""));
  request.seed = demo.seed;
  request.sampling.temperature = 1.0f;
  request.max_tokens = task.characters;
  engine::GeneratorOptions options = demo.options;
  options.use_cache = use_cache;
  KV_TRY(const auto generator,
         engine::Generator::Make(task.model, demo.open.loaded.tokenizer->vocabulary(),
                                 *demo.timing_team, options));
  Timed timed;
  timed.logits.reserve(task.characters * task.model.shape().vocab);
  engine::Observer observer;
  observer.on_logits = [&](const engine::LogitsEvent& event) {
    timed.logits.insert(timed.logits.end(), event.row.begin(), event.row.end());
  };
  KV_TRY(const auto report, generator->Run({&request, 1}, observer));
  timed.ms = report.timing.prefill_ms + report.timing.decode_ms;
  timed.positions = report.work.positions;
  timed.held_bytes = report.peak_bytes;
  for (const engine::GeneratedToken& token : report.results.front().choices.front().tokens) {
    timed.tokens.push_back(token.id);
  }
  return timed;
}

base::Result<Compared> Compare(const Demo& demo, const Task& task) {
  Compared compared;
  for (int i = 0; i < task.repetitions; ++i) {
    KV_TRY(auto with, RunOnce(demo, task, true));
    KV_TRY(auto without, RunOnce(demo, task, false));
    if (i > 0) {
      with.ms = std::min(with.ms, compared.with.ms);
      without.ms = std::min(without.ms, compared.without.ms);
    }
    compared = {std::move(with), std::move(without)};
    if (!compared.equal()) break;
  }
  return compared;
}

void PrintTableRow(std::string_view characters, std::string_view positions, std::string_view time,
                   std::string_view ratio, std::string_view bits) {
  fmt::print("  {}{}{}{}{}\n", PadRight(characters, 12), PadRight(positions, 26),
             PadRight(time, 20), PadRight(ratio, 8), bits);
}

void PrintHead(const Demo& demo) {
  const DemoTexts& texts = demo.texts();
  PrintTableRow(texts.cache_head_length, texts.cache_head_positions, texts.cache_head_time,
                texts.cache_head_ratio, texts.cache_head_bits);
}

void PrintComparison(const Demo& demo, std::uint64_t characters, const Compared& compared) {
  PrintTableRow(
      demo.Integer(characters),
      demo.Integer(compared.with.positions) + " / " + demo.Integer(compared.without.positions),
      demo.Decimal(compared.with.ms, 1) + " / " + demo.Decimal(compared.without.ms, 1),
      demo.Decimal(compared.without.ms / compared.with.ms, 1) + "×",
      compared.equal() ? demo.texts().cache_equal : demo.texts().cache_different);
}

// A text begins with one token that no character is generated for.
std::uint64_t MostCharacters(const model::Model& model, std::uint64_t wanted) {
  return std::min(wanted, model.shape().context - 1);
}

base::Result<bool> ShowLongContext(const Demo& demo) {
  constexpr std::uint64_t kContext = 512;
  constexpr std::uint64_t kCharacters = 500;
  const model::ModelShape& shape = demo.open.loaded.model->shape();
  PrintParagraph(Fill(demo.texts().cache_long, demo.Integer(kContext), demo.Integer(kCharacters)));
  KV_TRY(const auto random, eval::MakeRandomGpt2({.layers = shape.layers,
                                                  .heads = shape.heads,
                                                  .embedding = shape.embedding,
                                                  .feed_forward = shape.feed_forward,
                                                  .context = kContext,
                                                  .vocab = shape.vocab},
                                                 demo.seed));
  KV_TRY(const Compared compared, Compare(demo, {*random, kCharacters, 1}));
  PrintHead(demo);
  PrintComparison(demo, kCharacters, compared);
  return compared.equal();
}

}  // namespace

base::Result<bool> ShowCache(const Demo& demo) {
  const DemoTexts& texts = demo.texts();
  const model::Model& model = *demo.open.loaded.model;
  const model::ModelShape& shape = model.shape();
  PrintHeading(6, texts.cache_title);
  PrintParagraph(texts.cache_look);
  PrintParagraph(Fill(texts.cache_threads, demo.timing_team->size()));
  PrintHead(demo);
  bool equal = true;
  Compared last;
  for (const std::uint64_t wanted : {32, 64, 120}) {
    const std::uint64_t characters = MostCharacters(model, wanted);
    KV_TRY(last, Compare(demo, {model, characters, 3}));
    PrintComparison(demo, characters, last);
    equal = equal && last.equal();
  }
  const std::uint64_t characters = MostCharacters(model, 120);
  PrintParagraph(Fill(texts.cache_sums, demo.Integer(characters), demo.Integer(last.with.positions),
                      demo.Integer(last.without.positions)));
  PrintParagraph(texts.cache_why);
  const std::uint64_t width = shape.kv_heads * shape.head_dim;
  const std::uint64_t bytes = 2 * shape.layers * width * sizeof(float);
  const std::uint64_t tokens = std::min<std::uint64_t>(128, shape.context);
  PrintParagraph(Fill(texts.cache_memory, shape.layers, width, demo.Integer(bytes),
                      demo.Integer(tokens), demo.Integer(bytes * tokens)));
  PrintParagraph(Fill(texts.cache_held, demo.Integer(characters), demo.options.block_tokens,
                      demo.Integer(last.with.held_bytes)));
  PrintParagraph(texts.cache_large);
  KV_TRY(const bool long_equal, ShowLongContext(demo));
  return equal && long_equal;
}

}  // namespace kvasir::cli
