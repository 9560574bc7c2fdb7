#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/env.h"
#include "cli/json_output.h"
#include "eval/model_work.h"
#include "eval/random_gpt2.h"
#include "eval/random_llama.h"
#include "kernels/targets.h"
#include "model/model_file.h"

namespace kvasir::cli {
namespace {

using nlohmann::ordered_json;

std::string CellText(const ordered_json& value) {
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.dump();
}

}  // namespace

std::vector<std::uint64_t> Bench::TokensOr(const std::vector<std::uint64_t>& other) const {
  if (!flags.tokens.empty()) return flags.tokens;
  std::vector<std::uint64_t> fitting;
  for (const std::uint64_t tokens : other) fitting.push_back(std::min(tokens, shape().context));
  fitting.erase(std::unique(fitting.begin(), fitting.end()), fitting.end());
  return fitting;
}

model::LlamaConfig RandomLlamaConfig(const BenchFlags& flags, std::uint64_t context) {
  model::LlamaConfig config;
  config.layers = flags.layers;
  config.heads = config.kv_heads = flags.heads;
  config.head_dim = config.rope.dimensions = flags.dim / flags.heads;
  config.embedding = flags.dim;
  config.feed_forward = (flags.dim * 8 / 3 + 31) / 32 * 32;
  config.context = context;
  config.vocab = flags.vocab;
  return config;
}

base::Result<OpenBench> OpenFor(const BenchFlags& flags, std::uint64_t context) {
  if (!flags.model.empty()) {
    KV_TRY(auto loaded, model::LoadModel(base::Env::Default(), flags.model));
    return OpenBench{flags.model, std::move(loaded.model)};
  }
  const auto dtype = flags.dtype == "q8_0"   ? tensor::DType::kQ8_0
                     : flags.dtype == "q4_0" ? tensor::DType::kQ4_0
                                             : tensor::DType::kF32;
  if (flags.arch == "llama") {
    model::LlamaConfig config = RandomLlamaConfig(flags, context);
    if (flags.kv_heads != 0) config.kv_heads = flags.kv_heads;
    KV_TRY(auto model, eval::MakeRandomLlama(config, /*seed=*/1, dtype));
    return OpenBench{"random weights", std::move(model)};
  }
  KV_TRY(auto model, eval::MakeRandomGpt2({.layers = flags.layers,
                                           .heads = flags.heads,
                                           .embedding = flags.dim,
                                           .feed_forward = 4 * flags.dim,
                                           .context = context,
                                           .vocab = flags.vocab},
                                          /*seed=*/1, dtype));
  return OpenBench{"random weights", std::move(model)};
}

void PrintTable(const Rows& rows) {
  if (rows.empty()) return;
  std::vector<std::string> lines(rows.size() + 1);
  for (const auto& [key, unused] : rows.front().items()) {
    std::size_t width = key.size();
    for (const ordered_json& row : rows) width = std::max(width, CellText(row[key]).size());
    lines[0] += fmt::format("{:>{}}  ", key, width);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      lines[i + 1] += fmt::format("{:>{}}  ", CellText(rows[i][key]), width);
    }
  }
  for (const std::string& line : lines) {
    fmt::print("{}\n", std::string_view(line).substr(0, line.size() - 2));
  }
}

ordered_json BenchJson(const Bench& bench, const std::string& model_name) {
  const model::ModelShape& shape = bench.shape();
  return {{"bench", bench.flags.kind},
          {"model", model_name},
          {"shape",
           {{"layers", shape.layers},
            {"heads", shape.heads},
            {"embedding", shape.embedding},
            {"vocab", shape.vocab},
            {"context", shape.context},
            {"weight_bytes_per_step", eval::WeightBytesPerStep(shape)}}},
          {"threads", bench.team.size()},
          {"target", kernels::CurrentTargetName()},
          {"repetitions", bench.flags.repetitions},
          {"policy",
           (bench.policy ? *bench.policy : kvcache::CachePolicy::Full(shape.layers, shape.kv_heads))
               .Canonical()},
          {"checked", true}};
}

void PrintBenchHead(const Bench& bench, const std::string& model_name,
                    const std::string& what_is_measured) {
  const model::ModelShape& shape = bench.shape();
  fmt::print("{}: {}\n", bench.flags.kind, what_is_measured);
  fmt::print(
      "{}: {} layers, {} heads, width {}, vocabulary {}, context {}, {:.2f} MB of weights a step\n",
      model_name, shape.layers, shape.heads, shape.embedding, shape.vocab, shape.context,
      static_cast<double>(eval::WeightBytesPerStep(shape)) / 1e6);
  fmt::print("{} {}, {}, medians of {}, results checked first\n\n", bench.team.size(),
             bench.team.size() == 1 ? "thread" : "threads", kernels::CurrentTargetName(),
             bench.flags.repetitions);
}

}  // namespace kvasir::cli
