// kvasir bench masks: how long the token mask of a constraint takes.
#include "cli/bench_masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "cli/json_output.h"
#include "constraints/constraint_compiler.h"
#include "model/model_file.h"

namespace kvasir::cli {
namespace {

using constraints::ConstraintKind;
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

double MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

// Random walks of at most so many tokens; every mask is timed, also those kept from before.
std::vector<double> TimeMasks(constraints::Matcher& matcher, std::size_t vocab, int walks,
                              std::size_t tokens) {
  std::mt19937_64 random(1);
  std::vector<double> times;
  base::TokenMask mask(vocab);
  for (int walk = 0; walk < walks; ++walk) {
    for (std::size_t i = 0; i < tokens && !matcher.IsComplete(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      matcher.Mask(mask);
      times.push_back(MicrosecondsSince(start));
      if (mask.Count() == 0) break;
      std::size_t left = random() % mask.Count();
      base::TokenId token = 0;
      while (!mask.Test(token) || left-- > 0) ++token;
      matcher.Accept(token);
    }
    matcher.Rollback(matcher.accepted_tokens());
  }
  return times;
}

}  // namespace

base::Result<int> RunBenchMasks(const BenchFlags& flags, const std::string& model) {
  KV_TRY(const auto loaded, model::LoadModel(base::Env::Default(), model));
  const tokenizer::Vocabulary& vocabulary = loaded.tokenizer->vocabulary();
  constraints::ConstraintCompiler compiler(vocabulary);
  Rows rows;
  for (const Sample& sample : kSamples) {
    const auto start = std::chrono::steady_clock::now();
    KV_TRY(const auto matcher, compiler.Make({sample.kind, {sample.text}}));
    const double compile = MicrosecondsSince(start);
    std::vector<double> times = TimeMasks(*matcher, vocabulary.size(), 20, 60);
    std::sort(times.begin(), times.end());
    double sum = 0;
    for (const double time : times) sum += time;
    const auto count = times.size();
    rows.push_back({{"constraint", sample.name},
                    {"compile_us", compile},
                    {"masks", count},
                    {"mean_us", sum / static_cast<double>(count)},
                    {"p50_us", times[count / 2]},
                    {"p99_us", times[count * 99 / 100]},
                    {"max_us", times.back()}});
  }
  if (flags.json) {
    PrintJson({{"model", model}, {"vocab", vocabulary.size()}, {"rows", std::move(rows)}});
    return 0;
  }
  fmt::print("masks of {} tokens, {}; random walks\n", vocabulary.size(), model);
  PrintTable(rows);
  return 0;
}

}  // namespace kvasir::cli
