// What the kinds of `kvasir bench` share: flags, the model to measure, tables.
#ifndef KVASIR_CLI_BENCH_H_
#define KVASIR_CLI_BENCH_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "eval/generation_speed.h"
#include "kvcache/cache_policy.h"
#include "model/llama_config.h"
#include "model/model.h"

namespace kvasir::cli {

// The defaults are the lesson's shape.
struct BenchFlags {
  std::string kind;
  std::string model;          // Empty: random weights of the shape below.
  std::string arch = "gpt2";  // Or llama.
  std::string dtype = "f32";  // Of random weights: or q8_0, q4_0.
  std::uint64_t layers = 4;
  std::uint64_t heads = 4;
  std::uint64_t kv_heads = 0;  // Of llama; 0: as many as heads.
  std::uint64_t dim = 128;
  std::uint64_t vocab = 6289;
  std::uint64_t context = 128;
  std::uint64_t threads = 1;
  std::uint64_t repetitions = 9;
  std::vector<std::uint64_t> tokens;     // Empty: the kind's own.
  std::vector<std::uint64_t> sequences;  // Likewise.
  std::string plot;                      // File for a picture; empty: none. Of kind cache.
  bool quick = false;                    // Likewise.
  std::string kv;                        // The --kv language; empty: full. Of one model's decoding.
  std::string schemas;                   // Folder; empty: the samples. Of kind masks.
  std::string formats = "annotate";      // Likewise.
  std::string store;                     // Address; empty: a directory. Of kind store.
  bool compress = false;                 // Likewise.
  bool json = false;
};

// A model being measured.
struct Bench {
  const BenchFlags& flags;
  const model::Model& model;
  base::ThreadTeam& team;
  std::optional<kvcache::CachePolicy> policy = std::nullopt;  // Of --kv.

  const model::ModelShape& shape() const { return model.shape(); }
  // The lengths asked for, else these, as far as they fit the context.
  std::vector<std::uint64_t> TokensOr(const std::vector<std::uint64_t>& other) const;
  eval::SpeedOptions Options(std::uint64_t tokens) const {
    return {.tokens = tokens, .repetitions = flags.repetitions, .policy = policy};
  }
};

struct OpenBench {
  std::string name;
  std::unique_ptr<model::Model> model;
};
// The file, or random weights for texts of so many tokens.
base::Result<OpenBench> OpenFor(const BenchFlags& flags, std::uint64_t context);

// Multi-head attention, and the MLP's middle 8/3 times as wide as the model, as is usual.
model::LlamaConfig RandomLlamaConfig(const BenchFlags& flags, std::uint64_t context);

// Measurements as JSON; keys in the order of the table's columns, the same in each.
using Rows = std::vector<nlohmann::ordered_json>;
void PrintTable(const Rows& rows);

// What every kind's document begins with, and the lines above its table.
nlohmann::ordered_json BenchJson(const Bench& bench, const std::string& model_name);
void PrintBenchHead(const Bench& bench, const std::string& model_name,
                    const std::string& what_is_measured);

// bench_engine.cc: kind "engine".
base::Result<Rows> RunBenchEngine(const Bench& bench);
// bench_store.cc: kind "store".
base::Result<Rows> RunBenchStore(const Bench& bench);
// bench_cache.cc: kind "cache", whole.
base::Result<int> RunBenchCache(const BenchFlags& flags);
// bench_attention.cc: kind "attention", whole.
base::Result<int> RunBenchAttention(const BenchFlags& flags);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_BENCH_H_
