// kvasir bench attention: what the cache of each attention variant costs, in bytes and in time.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench.h"
#include "cli/json_output.h"
#include "eval/attention_speed.h"
#include "eval/random_deepseek.h"
#include "eval/random_llama.h"

namespace kvasir::cli {
namespace {

using nlohmann::ordered_json;

// Models of random weights that differ in their attention alone, and their names.
struct Variants {
  std::vector<std::unique_ptr<model::Model>> models;
  std::vector<eval::AttentionVariant> named;

  void Add(std::string name, std::unique_ptr<model::Model> model) {
    named.push_back({std::move(name), model.get()});
    models.push_back(std::move(model));
  }
};

base::Result<void> AddLlama(const BenchFlags& flags, std::uint64_t context, std::uint64_t kv_heads,
                            const char* name, Variants& variants) {
  model::LlamaConfig config = RandomLlamaConfig(flags, context);
  config.kv_heads = kv_heads;
  KV_TRY(auto model, eval::MakeRandomLlama(config, /*seed=*/1));
  variants.Add(fmt::format("{} {}", name, kv_heads), std::move(model));
  return base::Success();
}

// DeepSeek-V2's proportions: a latent of 4 heads' channels and a rotated key of half a head's.
base::Result<void> AddLatent(const BenchFlags& flags, std::uint64_t context, Variants& variants) {
  const model::LlamaConfig like = RandomLlamaConfig(flags, context);
  model::DeepseekConfig config;
  config.layers = like.layers;
  config.heads = like.heads;
  config.embedding = like.embedding;
  config.feed_forward = like.feed_forward;
  config.context = like.context;
  config.vocab = like.vocab;
  config.latent_dim = 4 * like.head_dim;
  config.nope_dim = config.value_dim = like.head_dim;
  config.rope.dimensions = like.head_dim / 4 * 2;
  KV_TRY(auto model, eval::MakeRandomDeepseek(config, /*seed=*/1));
  variants.Add(fmt::format("MLA {}+{}", config.latent_dim, config.rope.dimensions),
               std::move(model));
  return base::Success();
}

base::Result<Variants> MakeVariants(const BenchFlags& flags, std::uint64_t context) {
  Variants variants;
  KV_TRY(AddLlama(flags, context, flags.heads, "MHA", variants));
  const std::uint64_t grouped = flags.kv_heads != 0 ? flags.kv_heads : flags.heads / 4;
  if (grouped > 1 && grouped < flags.heads) {
    KV_TRY(AddLlama(flags, context, grouped, "GQA", variants));
  }
  KV_TRY(AddLlama(flags, context, 1, "MQA", variants));
  KV_TRY(AddLatent(flags, context, variants));
  return variants;
}

}  // namespace

base::Result<int> RunBenchAttention(const BenchFlags& flags) {
  std::vector<std::uint64_t> lengths = flags.tokens;
  if (lengths.empty()) lengths = {128, 4096};
  const std::uint64_t context = *std::max_element(lengths.begin(), lengths.end());
  KV_TRY(const Variants variants, MakeVariants(flags, context));
  KV_TRY(const auto team, base::ThreadTeam::Make(flags.threads));
  KV_TRY(const auto speeds,
         eval::MeasureAttention(variants.named, lengths, flags.repetitions, *team));
  Rows rows;
  for (const eval::AttentionSpeed& speed : speeds) {
    rows.push_back({{"attention", speed.name},
                    {"tokens", speed.length},
                    {"cache_bytes_per_token", speed.cache_bytes_per_token},
                    {"cache_mb", static_cast<double>(speed.cache_bytes) / 1e6},
                    {"weights_mb", static_cast<double>(speed.weight_bytes) / 1e6},
                    {"us_per_token", speed.us_per_token},
                    {"us_best", speed.us_best},
                    {"ratio", speed.ratio}});
  }
  const Bench bench = {flags, *variants.models.front(), *team};
  if (flags.json) {
    ordered_json json = BenchJson(bench, "random weights");
    json["rows"] = std::move(rows);
    PrintJson(json);
    return 0;
  }
  PrintBenchHead(bench, "random weights", "one token at the end of a text, by kind of attention");
  PrintTable(rows);
  return 0;
}

}  // namespace kvasir::cli
