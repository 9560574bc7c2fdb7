// kvasir bench masks: how long the token mask of a constraint takes.
#include "cli/bench_masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/env.h"
#include "cli/json_output.h"
#include "cli/schema_folder.h"
#include "constraints/constraint_compiler.h"
#include "model/model_file.h"

namespace kvasir::cli {
namespace {

using constraints::ConstraintKind;
using constraints::Matcher;
using nlohmann::ordered_json;

struct Sample {
  const char* name;
  ConstraintKind kind;
  const char* text;
};
constexpr Sample kSamples[] = {
    {"date", ConstraintKind::kRegex, "[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]"},
    {"couplet", ConstraintKind::kRegex, "(\\p{Han}{7}，\\p{Han}{7}。){2}"},
    {"nested", ConstraintKind::kGrammar, "root ::= \"(\" root \")\" root | [a-z]*"},
    {"person", ConstraintKind::kJsonSchema,
     R"({"type":"object","required":["name","age"],"properties":{"name":{"type":"string"},
         "age":{"type":"integer","minimum":0},"tags":{"type":"array",
         "items":{"type":"string"}}}})"},
};

// Of this thread: what others do meanwhile does not count.
double ThreadMicroseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// One mask that was made, and where.
struct MaskTime {
  double us = 0;
  std::size_t constraint = 0;  // Index of its constraint, text and byte of the text.
  std::size_t text = 0;
  std::size_t byte = 0;
};

struct MaskTimes {
  std::vector<double> compile_us;
  std::vector<MaskTime> masks;
};

double TimeMask(Matcher& matcher, base::TokenMask& mask) {
  const double start = ThreadMicroseconds();
  matcher.Mask(mask);
  return ThreadMicroseconds() - start;
}

// Random walks of at most so many tokens; every mask is timed, also those kept from before.
void WalkAtRandom(Matcher& matcher, std::size_t vocab, int walks, std::size_t tokens,
                  MaskTimes& times) {
  std::mt19937_64 random(1);
  base::TokenMask mask(vocab);
  for (int walk = 0; walk < walks; ++walk) {
    for (std::size_t i = 0; i < tokens && !matcher.IsComplete(); ++i) {
      times.masks.push_back({.us = TimeMask(matcher, mask)});
      if (mask.Count() == 0) break;
      std::size_t left = random() % mask.Count();
      base::TokenId token = 0;
      while (!mask.Test(token) || left-- > 0) ++token;
      matcher.Accept(token);
    }
    matcher.Rollback(matcher.accepted_tokens());
  }
}

// Cuts texts into tokens, always the longest one.
class TokenCutter {
 public:
  explicit TokenCutter(const tokenizer::Vocabulary& vocabulary) {
    for (base::TokenId id = 0; id < vocabulary.size(); ++id) {
      const std::string_view bytes = vocabulary.Bytes(id);
      if (bytes.empty()) continue;
      ids_.emplace(bytes, id);
      longest_ = std::max(longest_, bytes.size());
    }
  }
  // The token and its bytes; 0 bytes where no token begins so.
  std::pair<base::TokenId, std::size_t> Next(std::string_view text) const {
    for (std::size_t n = std::min(longest_, text.size()); n > 0; --n) {
      const auto known = ids_.find(text.substr(0, n));
      if (known != ids_.end()) return {known->second, n};
    }
    return {0, 0};
  }

 private:
  std::map<std::string_view, base::TokenId> ids_;
  std::size_t longest_ = 0;
};

// Along a text, until a token is refused.
void WalkAlong(Matcher& matcher, std::string_view text, const TokenCutter& cutter,
               base::TokenMask& mask, MaskTime place, MaskTimes& times) {
  while (place.byte < text.size()) {
    place.us = TimeMask(matcher, mask);
    times.masks.push_back(place);
    const auto [token, bytes] = cutter.Next(text.substr(place.byte));
    if (bytes == 0 || !mask.Test(token) || !matcher.Accept(token)) break;
    place.byte += bytes;
  }
  matcher.Rollback(matcher.accepted_tokens());
}

double Quantile(std::vector<double> sorted, double q) {
  if (sorted.empty()) return 0;
  std::sort(sorted.begin(), sorted.end());
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(q * static_cast<double>(sorted.size())))];
}

ordered_json RowOf(const std::string& name, const MaskTimes& times) {
  std::vector<double> us;
  double sum = 0;
  for (const MaskTime& mask : times.masks) {
    us.push_back(mask.us);
    sum += mask.us;
  }
  return {{"constraint", name},
          {"compile_p50_us", Quantile(times.compile_us, 0.5)},
          {"masks", us.size()},
          {"mean_us", us.empty() ? 0 : sum / static_cast<double>(us.size())},
          {"p50_us", Quantile(us, 0.5)},
          {"p99_us", Quantile(us, 0.99)},
          {"max_us", Quantile(us, 1)}};
}

base::Result<ordered_json> MeasureSamples(const tokenizer::Vocabulary& vocabulary) {
  auto rows = ordered_json::array();
  for (const Sample& sample : kSamples) {
    constraints::ConstraintCompiler compiler(vocabulary);
    const constraints::ConstraintSpec spec = {sample.kind, {sample.text}};
    MaskTimes times;
    const double start = ThreadMicroseconds();
    KV_TRY(const auto grammar, constraints::CompileGrammar(spec));
    times.compile_us.push_back(ThreadMicroseconds() - start);
    KV_TRY(const auto matcher, compiler.Make(spec));
    WalkAtRandom(*matcher, vocabulary.size(), 20, 60, times);
    rows.push_back(RowOf(sample.name, times));
  }
  return ordered_json{{"rows", std::move(rows)}};
}

// The slowest masks, by schema and place.
ordered_json Slowest(const std::vector<SchemaWithTexts>& schemas, std::vector<MaskTime> masks) {
  constexpr std::size_t kMostShown = 20;
  const auto middle =
      masks.begin() + static_cast<std::ptrdiff_t>(std::min(kMostShown, masks.size()));
  std::partial_sort(masks.begin(), middle, masks.end(),
                    [](const MaskTime& a, const MaskTime& b) { return a.us > b.us; });
  auto shown = ordered_json::array();
  for (auto mask = masks.begin(); mask != middle; ++mask) {
    shown.push_back({{"schema", schemas[mask->constraint].name},
                     {"text", mask->text},
                     {"byte", mask->byte},
                     {"us", mask->us}});
  }
  return shown;
}

base::Result<ordered_json> MeasureSchemas(const BenchFlags& flags,
                                          const tokenizer::Vocabulary& vocabulary) {
  KV_TRY(const auto schemas, ReadSchemaFolder(flags.schemas));
  const auto trie = std::make_shared<const constraints::TokenTrie>(vocabulary);
  const TokenCutter cutter(vocabulary);
  base::TokenMask mask(vocabulary.size());
  MaskTimes times;
  std::size_t refused = 0;
  for (std::size_t s = 0; s < schemas.size(); ++s) {
    constraints::ConstraintSpec spec = {ConstraintKind::kJsonSchema, {schemas[s].schema}};
    spec.json.assert_formats = flags.formats == "assert";
    const double start = ThreadMicroseconds();
    auto grammar = constraints::CompileGrammar(spec);
    const double compile_us = ThreadMicroseconds() - start;
    if (!grammar) {
      ++refused;
      continue;
    }
    times.compile_us.push_back(compile_us);
    constraints::GrammarMatcher matcher(
        std::make_shared<constraints::CompiledConstraint>(std::move(grammar).value(), trie));
    for (std::size_t t = 0; t < schemas[s].texts.size(); ++t) {
      WalkAlong(matcher, schemas[s].texts[t], cutter, mask, {.constraint = s, .text = t}, times);
    }
  }
  auto rows = ordered_json::array({RowOf(flags.schemas, times)});
  return ordered_json{{"schemas", schemas.size()},
                      {"refused", refused},
                      {"rows", std::move(rows)},
                      {"slowest", Slowest(schemas, times.masks)}};
}

}  // namespace

base::Result<int> RunBenchMasks(const BenchFlags& flags, const std::string& model) {
  KV_TRY(const auto loaded, model::LoadModel(base::Env::Default(), model));
  const tokenizer::Vocabulary& vocabulary = loaded.tokenizer->vocabulary();
  const bool samples = flags.schemas.empty();
  KV_TRY(const auto measured,
         samples ? MeasureSamples(vocabulary) : MeasureSchemas(flags, vocabulary));
  if (flags.json) {
    ordered_json json = {{"model", model}, {"vocab", vocabulary.size()}};
    json.update(measured);
    PrintJson(json);
    return 0;
  }
  fmt::print("masks of {} tokens, {}; {}\n", vocabulary.size(), model,
             samples ? "random walks" : "along the instances of a folder of schemas");
  PrintTable(measured["rows"].get<Rows>());
  return 0;
}

}  // namespace kvasir::cli
