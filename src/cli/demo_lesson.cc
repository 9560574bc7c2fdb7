// Sections 1 to 5 of the demo: probabilities, temperature, filters, openings, forms.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "cli/demo.h"
#include "cli/generation.h"
#include "cli/json_output.h"
#include "cli/longest_run.h"
#include "cli/next_table.h"
#include "cli/poem_generation.h"
#include "cli/terminal_text.h"
#include "constraints/acrostic.h"
#include "constraints/verse_form.h"
#include "corpus/corpus_counts.h"
#include "engine/last_logits.h"
#include "engine/prompt.h"
#include "kernels/softmax.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kShown = 8;       // rows of a next-character table
constexpr std::uint64_t kPoems = 3;     // samples of each setting
constexpr std::uint64_t kMaxPoem = 64;  // tokens: a poem of 8 lines of 7 has as many

// Counted by `kvasir corpus tang` in the lesson's corpus.
constexpr std::uint64_t kSpringWind = 810;     // 春风
constexpr std::uint64_t kSpringWindEnd = 113;  // 春风。

template <typename... Args>
std::string Fill(std::string_view text, const Args&... args) {
  return fmt::format(fmt::runtime(text), args...);
}

std::vector<std::uint32_t> IdsOf(const std::vector<sampling::TokenLogProb>& ranked) {
  std::vector<std::uint32_t> ids;
  for (const sampling::TokenLogProb& token : ranked) ids.push_back(token.id);
  return ids;
}

void PrintNextRow(const Demo& demo, std::string_view text,
                  const std::vector<sampling::TokenLogProb>& ranked) {
  std::string row;
  for (std::size_t i = 0; i < std::min(kShown, ranked.size()); ++i) {
    row += fmt::format("{} {}  ",
                       Visible(TokenText(demo.open.loaded.tokenizer->vocabulary(), ranked[i].id)),
                       demo.Decimal(100 * ranked[i].prob, 1));
  }
  while (row.ends_with(' ')) row.pop_back();
  fmt::print("  {} →\n      {}\n", text, row);
}

// Where the poem's own next character stands among all. False unless it is among those shown.
bool PrintFamous(const Demo& demo, const std::string& character,
                 const std::vector<sampling::TokenLogProb>& ranked) {
  const auto id = demo.open.loaded.tokenizer->vocabulary().FindPiece(character);
  if (!id) return false;  // Another model's vocabulary.
  const std::vector<std::uint32_t> ids = IdsOf(ranked);
  const auto rank = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), *id) - ids.begin());
  const std::string_view among =
      rank < kShown ? demo.texts().next_among : demo.texts().next_not_among;
  PrintParagraph(Fill(demo.texts().next_famous, character, demo.Integer(rank + 1),
                      demo.Decimal(100 * ranked[rank].prob, 2), among));
  return rank < kShown;
}

// The counted share of 春风。 beside the model's probability.
void PrintCounts(const Demo& demo, const std::vector<sampling::TokenLogProb>& ranked) {
  const auto stop = demo.open.loaded.tokenizer->vocabulary().FindPiece("。");
  double model = 0;
  for (const sampling::TokenLogProb& token : ranked) {
    if (stop && token.id == *stop) model = token.prob;
  }
  const bool live = !demo.corpus.empty();
  const std::uint64_t all = live ? corpus::CountPhrase(demo.corpus, "春风") : kSpringWind;
  const std::uint64_t ends = live ? corpus::CountPhrase(demo.corpus, "春风。") : kSpringWindEnd;
  const double share =
      all == 0 ? 0.0 : 100.0 * static_cast<double>(ends) / static_cast<double>(all);
  PrintParagraph(Fill(live ? demo.texts().next_count_live : demo.texts().next_count_known,
                      demo.Integer(all), demo.Integer(ends), demo.Decimal(share, 2),
                      demo.Decimal(100 * model, 2)));
  PrintParagraph(demo.texts().next_frequencies);
}

base::Result<engine::GenerateReport> Generate(const Demo& demo,
                                              std::vector<engine::GenerateRequest> requests) {
  KV_TRY(const auto generator,
         engine::Generator::Make(*demo.open.loaded.model, demo.open.loaded.tokenizer->vocabulary(),
                                 *demo.open.team, demo.options));
  return generator->Run(requests);
}

// Poems that end where the model ends a line.
base::Result<engine::GenerateRequest> FreeRequest(const Demo& demo, const std::string& opening,
                                                  float temperature) {
  engine::GenerateRequest request;
  KV_TRY(request.prompt, engine::PromptTokens(*demo.open.loaded.tokenizer, opening));
  request.sampling.temperature = temperature;
  request.seed = demo.seed;
  request.max_tokens = kMaxPoem;
  request.stops = {"\n"};
  return request;
}

void PrintRun(const Demo& demo, std::string_view sample) {
  if (demo.corpus.empty()) return;
  const LongestRun run = FindLongestRun(demo.corpus, sample);
  PrintSample("", Fill(demo.texts().run, run.characters, OneLine(run.text)));
}

void PrintPoems(const Demo& demo, std::string_view label, const engine::RequestResult& result) {
  for (const engine::ChoiceResult& choice : result.choices) {
    PrintSample(fmt::format("{}  {}", label, choice.index + 1), OneLine(choice.text));
    PrintRun(demo, choice.text);
  }
}

// The share of all draws that falls on tokens beyond the `best` most probable, in percent.
double TailShare(const std::vector<float>& logits, float temperature, std::size_t best) {
  std::vector<float> weights(logits.size());
  kernels::SoftmaxWeights(logits.data(), logits.size(),
                          kernels::MaxValue(logits.data(), logits.size()), temperature,
                          weights.data());
  std::sort(weights.begin(), weights.end(), std::greater<>());
  double head = 0;
  double total = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    total += static_cast<double>(weights[i]);
    if (i < best) head += static_cast<double>(weights[i]);
  }
  return 100.0 * (total - head) / total;
}

bool IsQijue(std::string_view poem) {
  const std::vector<std::string_view> characters = base::SplitCharacters(poem);
  if (characters.size() != 32) return false;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const bool mark = characters[i] == "，" || characters[i] == "。";
    if (mark != (i % 8 == 7)) return false;
  }
  return true;
}

base::Result<engine::GenerateRequest> FormRequest(
    const Demo& demo, float temperature, std::uint64_t count,
    base::Result<std::unique_ptr<constraints::Matcher>> form) {
  if (!form) return form.error();
  SamplingFlags sampling;
  sampling.temperature = temperature;
  sampling.count = count;
  KV_TRY(auto request, PoemRequest(demo.open, sampling, std::move(form.value())));
  request.seed = demo.seed;
  return request;
}

}  // namespace

void PrintHeading(int number, std::string_view title) {
  const std::string line = fmt::format("── {}  {} ", number, title);
  std::string rule;
  for (std::size_t i = DisplayWidth(line); i < kColumns; ++i) rule += "─";
  fmt::print("\n{}{}\n", line, rule);
}

void PrintParagraph(std::string_view text) { fmt::print("{}", Wrap(text, kColumns, "")); }

void PrintSample(std::string_view label, std::string_view text) {
  constexpr std::size_t kLabelColumns = 13;
  const std::string wrapped = Wrap(text, kColumns - kLabelColumns - 2, "");
  std::string_view rest = wrapped;
  bool first = true;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    fmt::print("  {}{}\n", PadRight(first ? label : "", kLabelColumns), rest.substr(0, end));
    rest.remove_prefix(end + 1);
    first = false;
  }
}

base::Result<void> ShowNextTables(const Demo& demo) {
  const DemoTexts& texts = demo.texts();
  PrintHeading(1, texts.next_title);
  const std::uint64_t vocab = demo.open.loaded.model->shape().vocab;
  PrintParagraph(Fill(texts.next_look, demo.Integer(vocab)));
  const auto ranked = [&](const std::string& text) {
    return NextTokens(demo.open, demo.options, text, vocab);
  };
  KV_TRY(const auto river, ranked("白日依山尽，黄河入海"));
  PrintNextRow(demo, "白日依山尽，黄河入海", river);
  KV_TRY(const auto moon, ranked("床前明月光，疑是地上"));
  PrintNextRow(demo, "床前明月光，疑是地上", moon);
  KV_TRY(const auto wind, ranked("春风"));
  PrintNextRow(demo, "春风", wind);
  const bool knows_river = PrintFamous(demo, "流", river);
  const bool knows_moon = PrintFamous(demo, "霜", moon);
  if (!knows_river && !knows_moon) PrintParagraph(texts.next_memory);
  PrintParagraph(texts.next_edition);
  PrintCounts(demo, wind);
  return base::Success();
}

base::Result<void> ShowTemperatures(const Demo& demo) {
  const DemoTexts& texts = demo.texts();
  PrintHeading(2, texts.temperature_title);
  PrintParagraph(texts.temperature_look);
  const std::vector<float> temperatures = {0.3f, 1.0f, 1.5f};
  std::vector<engine::GenerateRequest> requests;
  for (const float temperature : temperatures) {
    KV_TRY(auto request, FreeRequest(demo, "", temperature));
    request.choices = kPoems;
    requests.push_back(std::move(request));
  }
  KV_TRY(const auto report, Generate(demo, requests));
  for (std::size_t i = 0; i < temperatures.size(); ++i) {
    PrintPoems(demo, "T=" + demo.Decimal(temperatures[i], 1), report.results[i]);
  }
  KV_TRY(const auto logits, engine::LastLogits(*demo.open.loaded.model, requests.front().prompt,
                                               demo.options, *demo.open.team));
  constexpr std::size_t kBest = 100;
  for (const float temperature : temperatures) {
    PrintParagraph(Fill(texts.temperature_tail, demo.Decimal(temperature, 1),
                        demo.Decimal(TailShare(logits, temperature, kBest), 1)));
  }
  PrintParagraph(texts.temperature_why);
  return base::Success();
}

base::Result<void> ShowFilters(const Demo& demo) {
  const DemoTexts& texts = demo.texts();
  PrintHeading(3, texts.filter_title);
  PrintParagraph(texts.filter_look);
  KV_TRY(auto request, FreeRequest(demo, "", 1.5f));
  request.choices = kPoems;
  std::vector<engine::GenerateRequest> requests(2, request);
  const std::uint64_t vocab = demo.open.loaded.model->shape().vocab;
  requests[0].sampling.top_k = static_cast<std::uint32_t>(std::min<std::uint64_t>(20, vocab));
  requests[1].sampling.top_p = 0.9f;
  const std::string labels[] = {"top-k 20", "top-p " + demo.Decimal(0.9, 1)};
  KV_TRY(const auto report, Generate(demo, requests));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    PrintPoems(demo, labels[i], report.results[i]);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::size_t fewest = vocab;
    std::size_t most = 0;
    for (const engine::ChoiceResult& choice : report.results[i].choices) {
      for (const engine::GeneratedToken& token : choice.tokens) {
        fewest = std::min(fewest, token.candidates);
        most = std::max(most, token.candidates);
      }
    }
    PrintParagraph(Fill(texts.filter_sizes, labels[i], demo.Integer(fewest), demo.Integer(most)));
  }
  return base::Success();
}

base::Result<void> ShowOpenings(const Demo& demo) {
  const DemoTexts& texts = demo.texts();
  PrintHeading(4, texts.opening_title);
  PrintParagraph(texts.opening_look);
  const std::vector<std::string> openings = {"床前明月光，", "大漠孤烟直，", "人工智能"};
  std::vector<engine::GenerateRequest> requests;
  for (const std::string& opening : openings) {
    KV_TRY(auto request, FreeRequest(demo, opening, 0.8f));
    requests.push_back(std::move(request));
  }
  KV_TRY(const auto report, Generate(demo, requests));
  for (std::size_t i = 0; i < openings.size(); ++i) {
    const std::string text = openings[i] + report.results[i].choices.front().text;
    PrintSample("", OneLine(text));
    PrintRun(demo, text);
  }
  return base::Success();
}

base::Result<void> ShowForms(const Demo& demo) {
  const DemoTexts& texts = demo.texts();
  PrintHeading(5, texts.form_title);
  PrintParagraph(texts.form_look);
  const tokenizer::Vocabulary& vocabulary = demo.open.loaded.tokenizer->vocabulary();
  constexpr float kTemperature = 0.8f;
  constexpr float kHot = 1.5f;
  constexpr std::uint64_t kChecked = 20;
  std::vector<engine::GenerateRequest> requests;
  for (const auto& [heads, chars] : {std::pair("春眠不觉", 5u), std::pair("学无止境", 7u)}) {
    KV_TRY(auto request, FormRequest(demo, kTemperature, 1,
                                     constraints::MakeAcrosticMatcher(vocabulary, heads, chars)));
    requests.push_back(std::move(request));
  }
  for (const auto& [temperature, count] : {std::pair(kTemperature, 1ul), {kHot, kChecked}}) {
    KV_TRY(auto request,
           FormRequest(demo, temperature, count,
                       constraints::MakeVerseMatcher(vocabulary, constraints::VerseForm::kQijue)));
    requests.push_back(std::move(request));
  }
  KV_TRY(const auto report, Generate(demo, requests));
  const std::string labels[] = {Fill(texts.form_acrostic, "春眠不觉", 5),
                                Fill(texts.form_acrostic, "学无止境", 7),
                                std::string(texts.form_qijue)};
  for (std::size_t i = 0; i < std::size(labels); ++i) {
    const std::string& poem = report.results[i].choices.front().text;
    PrintParagraph(labels[i]);
    PrintSample("", BreakVerseLines(poem));
    PrintRun(demo, poem);
  }
  const auto& checked = report.results.back().choices;
  const auto regular =
      std::count_if(checked.begin(), checked.end(),
                    [](const engine::ChoiceResult& choice) { return IsQijue(choice.text); });
  PrintParagraph(Fill(texts.form_check, regular, checked.size(), demo.Decimal(kHot, 1)));
  return base::Success();
}

}  // namespace kvasir::cli
